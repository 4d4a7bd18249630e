from __future__ import annotations

import os
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

from unskew.errors import InputError, InputTypeError
from unskew.numerics.row_keys import hash_rows


def hash_in_plain_python(row, seed=0):
    """The definition, one value at a time and without NumPy."""

    def mix(bits):
        bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % 2**64
        return bits ^ (bits >> 31)

    def word(value):
        if value != value:
            return 0x7FF8000000000000
        if isinstance(value, int) and int(float(value)) != value:
            return mix(abs(value) ^ (0xBB67AE8584CAA73B if value < 0 else 0x6A09E667F3BCC908))
        return struct.unpack("<Q", struct.pack("<d", float(value) + 0.0))[0]

    gamma = 0x9E3779B97F4A7C15
    state = mix(seed ^ gamma)
    for value in row:
        state = (mix(state ^ word(value)) + gamma) % 2**64
    return state


WIDE = [2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 2, 2**63 - 1, -(2**63), 2**60, 3 - 2**63]


def test_known_values():
    # Folds and saved states depend on these: they must never change.
    columns = [
        np.array([0.0, -1.5, np.nan, np.inf]),
        np.array([0, 7, 2**53 + 1, -(2**63)]),
        np.array([True, False, True, False]),
    ]
    assert hash_rows(columns).tolist() == [
        16304426812560722130,
        4992047803602567096,
        5749162435101100451,
        15655711338198130468,
    ]
    assert hash_rows(columns, seed=5).tolist() == [
        8302227843193136663,
        11952329931114422883,
        17624918626169993471,
        1272884550333330947,
    ]


@pytest.mark.parametrize("seed", [0, 5, 2**64 - 1])
def test_is_what_the_definition_gives(seed):
    numbers = [0.0, -0.0, 1.5, 1e-310, -1e300, np.inf, -np.inf, np.nan]
    columns = [np.array(numbers), np.array(WIDE)]
    expected = [hash_in_plain_python(row, seed) for row in zip(numbers, WIDE, strict=True)]
    assert hash_rows(columns, seed=seed).tolist() == expected


def test_values_that_compare_equal_have_equal_hashes():
    def single(values, dtype):
        return hash_rows([np.array(values, dtype=dtype)]).tolist()

    small = [0, 1, 100]
    for dtype in ("f2", "f4", "f8", ">f8", ">i4", "i1", "u1", "i8", "u8", ">u8"):
        assert single(small, dtype) == single(small, "f8"), dtype
    assert single([False, True], "?") == single([0.0, 1.0], "f8")
    assert single([-0.0], "f8") == single([0.0], "f8") == single([-0.0], "f4")
    third = np.float32(1 / 3)
    assert single([third], "f4") == single([float(third)], "f8") != single([1 / 3], "f8")
    payloads = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], "u8")
    assert len(set(hash_rows([payloads.view("f8")]))) == 1
    assert set(hash_rows([payloads.view("f8")])) == set(single([np.nan], "f4"))
    assert single([2**53, 2**60, 2**63], "u8") == single([2**53, 2**60, 2**63], "f8")
    assert single([-(2**63)], "i8") == single([-(2.0**63)], "f8")


def test_whole_numbers_that_floats_round_stay_apart():
    near = 2**60 + np.arange(-300, 301)
    assert len(set(hash_rows([near]))) == len(set(hash_rows([-near]))) == 601
    assert not set(hash_rows([near])) & set(hash_rows([-near]))
    assert hash_rows([near]).tolist() == hash_rows([near.astype(np.uint64)]).tolist()


def test_columns_matter_and_so_does_their_order():
    a, b = np.array([1.0, 2.0]), np.array([2.0, 1.0])
    one, other = hash_rows([a, b]), hash_rows([b, a])
    assert one[0] == other[1]
    assert one[1] == other[0]
    assert one[0] != other[0]
    assert not set(hash_rows([a])) & set(hash_rows([a, np.zeros(2)]))
    assert not set(hash_rows([a])) & set(hash_rows([a], seed=1))


def test_rows_do_not_depend_on_their_place_or_the_block():
    values = np.random.default_rng(0).normal(size=100_000)
    whole = hash_rows([values, values > 0])
    part = hash_rows([values[40_000:40_010], values[40_000:40_010] > 0])
    assert part.tolist() == whole[40_000:40_010].tolist()
    assert hash_rows([values[::-1], values[::-1] > 0]).tolist() == whole[::-1].tolist()
    assert len(hash_rows([values[:0]])) == 0


@pytest.mark.parametrize(
    "values",
    [
        np.arange(100_000),
        np.arange(100_000) / 10,
        np.arange(100_000) * 2**40,
        np.arange(100_000) * 5,
    ],
    ids=["counting", "tenths", "high bits", "fives"],
)
def test_folds_are_even(values):
    expected = len(values) / 5
    for hashes in (hash_rows([values]), hash_rows([values, values]), hash_rows([values], seed=1)):
        counts = np.bincount((hashes % np.uint64(5)).astype(np.int64), minlength=5)
        assert ((counts - expected) ** 2 / expected).sum() < 18.5  # chi-squared, 4 df, p = 0.001
    folds = [(hash_rows([values], seed=seed) % np.uint64(5)).astype(float) for seed in (1, 2)]
    assert abs(np.corrcoef(folds)[0, 1]) < 0.02


def test_a_million_rows_do_not_collide():
    # Of 2**39 pairs, one collides by chance with probability 3e-8.
    side = np.arange(1000)
    grid = [np.repeat(side, 1000), np.tile(side, 1000)]
    assert len(np.unique(hash_rows(grid))) == 10**6
    assert len(np.unique(hash_rows([grid[0] / 7, grid[1].astype(np.float32)]))) == 10**6


def test_every_bit_depends_on_every_column():
    random = np.random.default_rng(0)
    columns = [random.normal(size=20_000) for _ in range(3)]
    before = hash_rows(columns)
    for place in range(3):
        changed = list(columns)
        changed[place] = np.nextafter(columns[place], np.inf)  # the last bit of the value
        flipped = before ^ hash_rows(changed)
        shares = [(flipped >> np.uint64(bit) & np.uint64(1)).mean() for bit in range(64)]
        assert min(shares) > 0.48
        assert max(shares) < 0.52


def test_another_process_agrees():
    code = (
        "import numpy as np; from unskew.numerics.row_keys import hash_rows; "
        "print(hash_rows([np.arange(3)]).tolist())"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    here = hash_rows([np.arange(3)]).tolist()
    assert answers == {f"{here}\n"}


def test_what_cannot_be_hashed_is_refused():
    with pytest.raises(InputError, match="at least one column"):
        hash_rows([])
    with pytest.raises(InputError, match=r"one length; got \[2, 3\]"):
        hash_rows([np.zeros(2), np.zeros(3)])
    for wrong in (
        np.array(["a"]),
        np.array(["a"], dtype=object),
        np.zeros((2, 2)),
        np.zeros(1, "c16"),
    ):
        with pytest.raises(InputTypeError, match="floats, integers or booleans"):
            hash_rows([wrong])


def test_is_fast():
    columns = [np.random.default_rng(0).normal(size=10**6)] * 8
    begin = time.process_time()
    hash_rows(columns)
    assert time.process_time() - begin < 0.5
