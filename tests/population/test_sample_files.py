from __future__ import annotations

import gzip
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from unskew import Population, read_sample
from unskew.errors import InputError, InputFileError, ParameterError
from unskew.population import sample_files
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import TotalWeight


def test_types_are_found_by_looking_at_every_row(tmp_path):
    rows = [f"{row},{row},x" for row in range(200_000)]  # more than one block of a streaming reader
    rows[-1] = "199999,0.5,"
    (tmp_path / "a.csv").write_text("\n".join(["id,value,word", *rows]))
    table = read_sample(tmp_path / "a.csv")
    assert table.schema.types == [pa.int64(), pa.float64(), pa.string()]
    assert table["value"][-1].as_py() == 0.5
    assert table["word"].null_count == 1


def test_identifiers_keep_every_digit():
    def ids(text: bytes) -> list:
        return read_sample(io.BytesIO(b"id\n" + text), identifiers=["id"])["id"].to_pylist()

    assert ids(b"007\n8\n") == ["007", "8"]
    assert ids(b"7\n8\n") == [7, 8]
    assert ids(b"9223372036854775807\n1\n") == [2**63 - 1, 1]
    assert ids(b"92233720368547758070\n1\n") == ["92233720368547758070", "1"]
    assert ids(b"1.0\n1\n") == ["1.0", "1"]


def test_several_files_are_one_sample(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]})
    for name, part in (("1", frame[:1]), ("2", frame[1:])):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
        part[["b", "a"]].to_parquet(tmp_path / f"{name}.parquet", index=False)
    for kind in ("csv", "parquet"):
        table = read_sample(str(tmp_path / f"*.{kind}"))
        assert table.select(["a", "b"]).to_pydict() == {"a": [1, 2, 3], "b": ["x", None, "z"]}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a.csv": b"x\n1\n", "b.csv": b"y\n1\n"}, "is not in both"),
        ({"a.csv": b"x\n1\n", "b.csv": b"x\n2020-01-01\n"}, "in several types"),
        ({"a.csv": b"x\n1\n", "b.pq": b"PAR1"}, "mixes Parquet and CSV"),
        ({"a.csv": b"x,y\n1,2\n\n3\n"}, "Expected 2 columns"),
    ],
)
def test_files_that_do_not_go_together(tmp_path, files, words):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_sample([tmp_path / name for name in files])


def test_a_sample_that_is_not_there(tmp_path):
    with pytest.raises(InputFileError, match="The sample file"):
        read_sample(tmp_path / "a.csv")
    with pytest.raises(InputError, match="PAR1|Parquet"):
        read_sample(io.BytesIO(b"PAR1 and nothing else"))


@pytest.mark.parametrize("kind", ["csv", "parquet", "csv from a path"])
def test_arrows_threads_are_given_no_memory_of_pythons(monkeypatch, tmp_path, kind):
    """What they hold of Python's while the interpreter shuts down would abort the process."""
    table = pa.table({"x": np.arange(20_000.0), "y": np.arange(20_000.0)})
    path = tmp_path / "sample.csv"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        csv.write_csv(table, path)
    of_arrow = []

    def spy(read):
        def reading(source, *arguments, **options):
            of_arrow.append(pa.total_allocated_bytes() - before)
            return read(source, *arguments, **options)

        return reading

    monkeypatch.setattr(sample_files.csv, "read_csv", spy(sample_files.csv.read_csv))
    monkeypatch.setattr(sample_files.pq, "ParquetFile", spy(sample_files.pq.ParquetFile))
    content = path.read_bytes()
    before = pa.total_allocated_bytes()
    read_sample(path if kind == "csv from a path" else io.BytesIO(content))
    assert of_arrow
    assert min(of_arrow) >= len(content)


class TestDelimiters:
    ROWS = [{"a": 1.5, "b": "x;y"}, {"a": None, "b": "z"}]  # noqa: RUF012

    @pytest.mark.parametrize(
        ("name", "mark", "given"),
        [
            ("u.csv", ",", None),
            ("u.tsv", "\t", None),
            ("u.TXT", "\t", None),
            ("u.txt", ",", None),
            ("u.txt", "|", None),
            ("u.txt", "~", "~"),
            ("u.csv", ";", ";"),
            ("u.tsv", ",", ","),
        ],
    )
    @pytest.mark.parametrize("packed", ["", ".gz"])
    def test_sample_and_population_read_the_same(self, tmp_path, name, mark, given, packed):
        path = tmp_path / (name + packed)
        text = mark.join("ab") + f"\n1.5{mark}'x;y'\n{mark}z\n".replace("'", '"')
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        assert read_sample(path, delimiter=given).to_pylist() == self.ROWS
        population = Population(path, delimiter=given)
        assert population.columns == ["a", "b"]
        assert population.reduce(Reservoir(9)).rows.to_pylist() == self.ROWS
        with open(path, "rb") as file:  # its name and its first bytes tell
            assert read_sample(file, delimiter=given).to_pylist() == self.ROWS

    @pytest.mark.parametrize(
        ("name", "text", "given", "words"),
        [
            ("u.csv", "a;b\n1;2\n", None, r"separated by semicolons, pass delimiter=';'"),
            ("u.csv", "a\tb\n1\t2\n", None, r"separated by tabs, pass delimiter='.t'"),
            ("u.tsv", "a,b\n1,2\n", None, r"one column, 'a,b', if it is separated by tabs"),
            ("u.csv", "a,b\n1,2\n", "~", r"one column, 'a,b', if it is separated by '~'"),
            ("u.txt", "a,b;c\n1,2;3\n", None, r"'.*u.txt' may be separated by commas or by semic"),
        ],
    )
    def test_another_delimiter_is_suspected(self, tmp_path, name, text, given, words):
        (tmp_path / name).write_text(text)
        for read in (read_sample, Population):
            with pytest.raises(InputError, match=words):
                read(tmp_path / name, delimiter=given)

    @pytest.mark.parametrize("given", ["", ";;", "é", "\n", '"', "a", 7])
    def test_what_cannot_separate(self, tmp_path, given):
        (tmp_path / "u.csv").write_text("a,b\n1,2\n")
        for read in (read_sample, Population):
            with pytest.raises(ParameterError, match="delimiter"):
                read(tmp_path / "u.csv", delimiter=given)
        with pytest.raises(ParameterError, match="delimiter applies only to paths"):
            Population(np.zeros((2, 2)), delimiter=";")

    def test_decimal_commas_are_not_categories(self, tmp_path):
        (tmp_path / "u.csv").write_text("id;a;b\n1,1;1,5;x,y\n1,2;-2.000,25;1,5\n1,3;;z\n")
        with pytest.raises(InputError, match="Column 'a' of .*decimal comma, such as '1,5'"):
            read_sample(tmp_path / "u.csv", delimiter=";", identifiers=["id"])
        (tmp_path / "u.csv").write_text("a;b\n1.5;x,y\n2.25;1,5\n")
        assert read_sample(tmp_path / "u.csv", delimiter=";")["b"].to_pylist() == ["x,y", "1,5"]

    def test_a_folder_of_both(self, tmp_path):
        (tmp_path / "1.csv").write_text("a,b\n1,x\n")
        (tmp_path / "2.tsv").write_text("a\tb\n2\ty\n")
        (tmp_path / "notes.txt").write_text("hello")
        assert Population(tmp_path).reduce(TotalWeight()).rows == 2


@pytest.mark.parametrize("codec", ["gzip", "bz2", "zstd"])
def test_compressed_bytes_are_recognised(codec):
    def packed(text: bytes) -> bytes:
        stream = pa.BufferOutputStream()
        with pa.CompressedOutputStream(stream, codec) as file:
            file.write(text)
        return stream.getvalue().to_pybytes()

    content = packed(b"a,b\n1,x\n") + packed(b"2,y\n")  # two members are one text
    assert read_sample(io.BytesIO(content))["a"].to_pylist() == [1, 2]
    with pytest.raises(InputError, match=f"'stdin' could not be read as {codec}"):
        read_sample(io.BytesIO(content[:-9]))
    parquet = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}), parquet)
    assert read_sample(io.BytesIO(packed(parquet.getvalue())))["a"].to_pylist() == [1]
