"""Every kind of input is read whole, each row once, whatever the size of the parts; what is broken is one row's error."""

from __future__ import annotations

import csv
import json
import pickle
import random
from pathlib import Path
from typing import Any

import datasets
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attnflow as af
from attnflow.batch._part import Source
from attnflow.batch._rows import Columns, Picture, Row, kind_of
from attnflow.batch._source import source_of
from tests.batch.corpus import records, texts, write_jsonl

ALL = Columns(keep=("n", "label"))
# Texts that are hard on a reader of lines: quotes, separators, line ends of every kind.
HARD = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0") | st.sampled_from('",\n\r\t\u2028 '), max_size=20
)


def read(source: Source, size: int) -> list[Row]:
    """All rows, each part read as a worker reads it, in another order."""
    parts = list(source.parts(size))
    assert [part.number for part in parts] == list(range(len(parts)))
    random.Random(1).shuffle(parts)
    rows = [row for part in parts for row in pickle.loads(pickle.dumps(part)).read()]
    assert len(rows) == sum(part.rows for part in parts)
    return sorted(rows, key=lambda row: row.number)


def plain(rows: list[Row]) -> list[tuple[int, Any, Any]]:
    return [(row.number, row.value, row.error) for row in rows]


@given(st.lists(HARD.filter(bool), min_size=1, max_size=12), st.integers(1, 7))
def test_jsonl_of_anything(tmp_path_factory: pytest.TempPathFactory, found: list[str], size: int) -> None:
    path = tmp_path_factory.mktemp("jsonl") / "a.jsonl"
    write_jsonl(path, [{"text": text} for text in found])
    assert plain(read(source_of(path, Columns()), size)) == [(i, text, None) for i, text in enumerate(found)]


@given(st.lists(st.tuples(HARD, HARD), min_size=1, max_size=12), st.integers(1, 7), st.sampled_from(["\n", "\r\n"]))
def test_csv_of_anything(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[str, str]], size: int, end: str
) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator=end, quoting=csv.QUOTE_ALL)
        writer.writerows([("text", "label"), *found])
    rows = read(source_of(path, Columns(keep=("label",))), size)
    assert [(row.number, row.value, row.kept["label"]) for row in rows] == [(i, *pair) for i, pair in enumerate(found)]


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    "form", ["jsonl", "csv", "parquet", "tsv", "list", "generator", "dataset", "pandas", "polars", "arrow"]
)
def test_every_form_gives_the_same_rows(tmp_path: Path, form: str, size: int) -> None:
    source = source_of(written(tmp_path, form, records(10)), ALL)
    rows = read(source, size)
    assert source.total == (None if form == "generator" else 10)
    number: Any = str if form in ("csv", "tsv") else int  # which have nothing but text
    assert [(row.value, row.kept) for row in rows] == [
        (one["text"], {"n": number(one["n"]), "label": one["label"]}) for one in records(10)
    ]


def written(folder: Path, form: str, rows: list[dict[str, Any]]) -> Any:
    frame = pandas.DataFrame(rows)
    if form == "jsonl":
        return write_jsonl(folder / "a.jsonl", rows)
    if form in ("csv", "tsv"):
        frame.to_csv(folder / f"a.{form}", index=False, sep="," if form == "csv" else "\t")
        return folder / f"a.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), folder / "a.parquet", row_group_size=4)
        return folder / "a.parquet"
    return {
        "list": rows, "generator": iter(rows), "dataset": datasets.Dataset.from_list(rows), "pandas": frame,
        "polars": polars.DataFrame(rows), "arrow": pa.Table.from_pylist(rows),
    }[form]  # fmt: skip


def test_a_folder_of_files_of_rows(tmp_path: Path) -> None:
    rows = records(10)
    write_jsonl(tmp_path / "b.jsonl", rows[4:])
    write_jsonl(tmp_path / "a.jsonl", rows[:4])
    (tmp_path / "README.md").write_text("about it")
    (tmp_path / ".hidden.jsonl").write_text("{")
    (tmp_path / "c.jsonl").write_text("\n")
    assert [row.kept["n"] for row in read(source_of(tmp_path, ALL), 3)] == list(range(10))


def test_a_folder_of_texts(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for i, text in enumerate(texts(5)):
        (tmp_path / ("deep" if i % 2 else ".") / f"{i}.txt").write_text(f"{text}\n", encoding="utf-8-sig")
    (tmp_path / "9.txt").write_bytes(b"caf\xe9")
    (tmp_path / "picture.png").write_bytes(b"")
    rows = read(source_of(tmp_path, Columns()), 2)
    assert [row.id for row in rows] == ["0.txt", "2.txt", "4.txt", "9.txt", "deep/1.txt", "deep/3.txt"]
    assert [row.value for row in rows if row.error is None] == [texts(5)[i] for i in (0, 2, 4, 1, 3)]
    assert rows[3].error == "9.txt is not UTF-8: byte 3 cannot be read"


def test_images_are_read_by_who_explains_them(tmp_path: Path) -> None:
    for name in ("a.png", "b.JPG"):
        (tmp_path / name).write_bytes(b"")
    rows = read(source_of(tmp_path, Columns()), 1)
    assert [(row.id, row.value) for row in rows] == [(n, Picture(tmp_path / n)) for n in ("a.png", "b.JPG")]
    path = write_jsonl(tmp_path / "list.jsonl", [{"image": "a.png"}, {"image": "no picture"}])
    first, second = read(source_of(path, Columns()), 9)
    assert (first.value, second.value) == (Picture(tmp_path / "a.png"), "no picture")
    [row] = read(source_of([{"image": {"bytes": b"content", "path": None}}], Columns()), 9)
    assert row.value == Picture(b"content")


def test_broken_lines_are_errors_of_their_own(tmp_path: Path) -> None:
    lines = [
        b'\xef\xbb\xbf{"text": "one"}',
        b"{broken",
        b"",
        b'{"text": "caf\xe9"}',
        b'{"other": 1}',
        b"[1, 2]",
        b'{"text": 5}',
        b'{"text": "last"}',
    ]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    rows = read(source_of(tmp_path / "a.jsonl", Columns("text")), 2)
    assert [row.number for row in rows] == list(range(7))  # the blank line is none
    assert [row.value for row in rows if row.error is None] == ["one", [1, 2], "last"]
    said = [str(row.error) for row in rows]
    for place, words in {
        1: "not JSON",
        2: "not UTF-8: byte 0xe9",
        3: "missing",
        5: "a text was expected, got the number 5",
    }.items():
        assert words in said[place]


def test_broken_rows_of_csv(tmp_path: Path) -> None:
    content = b'text,label\r\none,a\r\n"two\r\nlines",b\r\nthree\r\n\r\ncaf\xe9,c\r\n"four" five,d\r\nlast,"e,f"\r\n'
    (tmp_path / "a.csv").write_bytes(content)
    rows = read(source_of(tmp_path / "a.csv", Columns(keep=("label",))), 2)
    assert [row.value for row in rows] == ["one", "two\r\nlines", None, None, None, "last"]
    assert rows[2].error == "the row has 1 fields, and the header 2"
    assert rows[3].error == "the row is not UTF-8: byte 0xe9 cannot be read"
    assert "not CSV" in str(rows[4].error)
    assert rows[5].kept == {"label": "e,f"}


def test_a_field_of_many_megabytes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f'text\n"{"word " * 100_000}"\nlast\n')
    assert [len(str(row.value)) for row in read(source_of(tmp_path / "a.csv", Columns()), 1)] == [500_000, 4]


def test_a_value_of_another_type_than_its_column(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"text": "a", "n": i} for i in range(1000)]
    rows += [{"text": "a", "n": "many"}, {"text": "a", "n": None}, {"text": "a", "n": 1 << 70}]
    found = read(source_of(write_jsonl(tmp_path / "a.jsonl", rows), Columns(keep=("n",))), 400)
    assert found[1000].error == "column 'n' holds int64 in the first rows, and here 'many'"
    assert found[1001].error is None
    assert "holds int64" in str(found[1002].error)


def test_kinds_of_values() -> None:
    values = ["text", ("a", "b"), ["split", "already"], [1, 2], [{"role": "user", "content": "hello"}], Picture(b"")]
    rows = read(source_of([{"x": value} for value in values], Columns("x")), 9)
    assert [kind_of(row.value) for row in rows] == ["text", "pair", "words", "ids", "chat", "picture"]
    pair = source_of([{"text": "a", "other": "b"}, {"text": "a", "other": None}], Columns("text", second="other"))
    first, second = read(pair, 9)
    assert first.value == ("a", "b")
    assert "missing" in str(second.error)


def test_the_digest_is_of_the_content(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", records(9))
    before = source_of(path, ALL).described()
    (tmp_path / "copy.jsonl").write_bytes(path.read_bytes())
    assert source_of(tmp_path / "copy.jsonl", ALL).described() == before
    [first, *others] = [part.digest for part in source_of(path, ALL).parts(3)]
    path.write_bytes(path.read_bytes().replace(b'"n": 8', b'"n": 9'))
    assert source_of(path, ALL).described() != before
    again = [part.digest for part in source_of(path, ALL).parts(3)]
    assert (again[0], again[1]) == (first, others[0])
    assert again[2] != others[1]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, form: str) -> None:
    path: Path = written(tmp_path, form, records(9))
    parts = list(source_of(path, ALL).parts(3))
    written(tmp_path, form, list(reversed(records(9))))
    with pytest.raises(af.errors.InvalidArtifact, match="was changed while it was read"):
        parts[1].read()


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        ("a.jsonl", '{"x": 1, "y": 2}\n', Columns(), "which column shall be explained\\? There are: x, y"),
        ("a.jsonl", '{"text": "a"}\n', Columns(keep=("lable",)), "the input has no column 'lable'"),
        ("a.jsonl", "\n", Columns(), "holds no row that can be read"),
        ("a.csv", "", Columns(), "is empty: its first row must hold the names"),
        ("a.csv", 'text\nfine\n"never closed\nmore\n', Columns(), "a quote is opened in record 2 and never closed"),
        ("a.parquet", "text", Columns(), "cannot be read as Parquet"),
        ("a.docx", "text", Columns(), "has the ending .docx, which is not read as rows"),
        ("a", "text", Columns(), "has no ending"),
    ],
)
def test_what_cannot_be_read_says_so(tmp_path: Path, name: str, content: str, columns: Columns, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(af.AttnflowError, match=message):
        source_of(tmp_path / name, columns)


def test_what_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(af.errors.InvalidArgument, match="there is no file or folder The keys"):
        source_of("The keys", Columns())
    with pytest.raises(af.errors.InvalidArgument, match="holds nothing that is read"):
        source_of(tmp_path, Columns())
    with pytest.raises(af.errors.InvalidArgument, match="got a int"):
        source_of(5, Columns())
    with pytest.raises(af.errors.InvalidArgument, match="the input is one mapping"):
        source_of({"text": ["a", "b"]}, Columns())
    with pytest.raises(af.errors.InvalidArgument, match="have no columns"):
        source_of(["a", "b"], Columns(keep=("label",)))


def test_lines_of_plain_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{json.dumps(text)}\n" for text in texts(3)))
    assert [row.value for row in read(source_of(path, Columns()), 2)] == texts(3)
