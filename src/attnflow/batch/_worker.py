"""The process of a worker: parts come in as pickles on stdin, answers go out as pickles on stdout.

A process of its own by name, not by multiprocessing, which would run the caller's script once more in each worker.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import Any, BinaryIO


def main() -> None:
    """Answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started this, who then ends it
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not get between the answers
    questions = sys.stdin.buffer
    try:
        _serve(questions, answers)
    except (EOFError, BrokenPipeError):  # whoever started this is gone
        os._exit(0)


def _serve(questions: BinaryIO, answers: BinaryIO) -> None:
    def say(*answer: Any) -> None:
        pickle.dump(answer, answers)
        answers.flush()

    try:
        from attnflow.batch._work import Work

        job, types = pickle.load(questions)
        work = Work(job, types, device=pickle.load(questions))
        say("ready")
        while True:
            part, careful, deadly = pickle.load(questions)
            alone = (lambda number: say("row", number)) if careful else None
            say("done", work(part, alone=alone, deadly=deadly))
    except (EOFError, BrokenPipeError):
        raise
    except Exception as error:
        say("failed", type(error), error.args, str(error))


if __name__ == "__main__":
    main()
