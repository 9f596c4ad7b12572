// Questions to the server, and its answers: as JSON, or as events that say how far it is.

/** What the server said of a question that it refused. */
export class Refusal extends Error {
  constructor({ error, message }) {
    super(message);
    this.code = error;
  }
}

async function post(path, asked, { signal, accept = "application/json" } = {}) {
  let answer;
  try {
    answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json", Accept: accept }, body: JSON.stringify(asked), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal({ error: "no_answer", message: "The server does not answer. Is it still running?" });
  }
  if (answer.status === 401) location.reload(); // signed out: the same address now asks for the token
  if (!answer.ok) throw new Refusal(await refusalOf(answer));
  return answer;
}

async function refusalOf(answer) {
  try {
    return await answer.json();
  } catch {
    return { error: "no_answer", message: `The server answered with status ${answer.status}.` };
  }
}

/** The answer to a question; `tell(event, data)` hears of waiting and progress before. */
export async function explain(asked, tell, signal) {
  const answer = await post("/api/explain", asked, { signal, accept: "text/event-stream" });
  for await (const { event, data } of eventsOf(answer.body)) {
    if (event === "answer") return data;
    if (event === "error") throw new Refusal(data);
    tell(event, data);
  }
  throw new Refusal({ error: "no_answer", message: "The server stopped before it had answered." });
}

export async function bottleneck(asked, signal) {
  return (await post("/api/bottleneck", asked, { signal })).json();
}

async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      return;
    }
    if (part.done) return;
    const blocks = (rest + part.value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n").filter((line) => !line.startsWith(":"));
      const field = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      if (field("event")) yield { event: field("event"), data: JSON.parse(field("data")) };
    }
  }
}
