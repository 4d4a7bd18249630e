"""Numbers as people write them: thousands separators, few digits, no exponents."""

from __future__ import annotations

import math

NOTHING = "–"
SPACE = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"


def count(value: float) -> str:
    """Return a whole number.

    Examples
    --------
    >>> count(1234567.2)
    '1,234,567'
    """
    return f"{value:,.0f}" if math.isfinite(value) else _not_finite(value)


def share(value: float | None) -> str:
    """Return a part of one as a percentage, with one digit where it is small.

    Examples
    --------
    >>> [share(value).replace(SPACE, " ") for value in (0, 0.00002, 0.0412, 0.5, 0.9999, 1)]
    ['0 %', '< 0.1 %', '4.1 %', '50 %', '> 99.9 %', '100 %']
    """
    if value is None or not math.isfinite(value):
        return NOTHING if value is None else _not_finite(value)
    size = abs(value)
    if 0 < size < 0.001:
        text = "< 0.1"
    elif 0.999 < size < 1:
        text = "> 99.9"
    else:
        digits = 1 if 0 < size < 0.0995 or 0.99 < size < 1 else 0
        text = f"{100 * size:,.{digits}f}"
    return f"{MINUS if value < 0 else ''}{text}{SPACE}%"


def decimal(value: float | None) -> str:
    """Return a number with two or three significant digits.

    Examples
    --------
    >>> [decimal(value) for value in (0, 1e-7, 0.01234, 0.5, 3.14159, 27.18, 1234.5, 2e21)]
    ['0', '< 0.001', '0.012', '0.50', '3.14', '27.2', '1,234', '2.0 × 10²¹']
    """
    if value is None or not math.isfinite(value):
        return NOTHING if value is None else _not_finite(value)
    size = abs(value)
    if size == 0:
        return "0"
    if size < 0.001:
        return "< 0.001" if value > 0 else f"> {MINUS}0.001"
    if size >= 1e15:
        return f"{MINUS if value < 0 else ''}{_power(size)}"
    digits = 3 if size < 0.0995 else 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{MINUS if value < 0 else ''}{size:,.{digits}f}"


def signed(value: float | None) -> str:
    """Return a difference with its sign and two digits after the point.

    Examples
    --------
    >>> [signed(value) for value in (0.4242, -0.031, 0.001, float("inf"), None)]
    ['+0.42', '−0.03', '0.00', '+∞', '–']
    """
    if value is None or math.isnan(value):
        return NOTHING
    if round(value, 2) == 0:
        return "0.00"
    size = f"{abs(value):,.2f}" if abs(value) < 1e6 else decimal(abs(value))
    return f"{'+' if value > 0 else MINUS}{size}"


def signed_share(value: float) -> str:
    """Return a difference of shares, in percentage points.

    Examples
    --------
    >>> [signed_share(value).replace(SPACE, " ") for value in (0.0121, -0.3, -1e-17)]
    ['+1.2 %', '−30.0 %', '0 %']
    """
    if round(value, 3) == 0:
        return f"0{SPACE}%"
    return f"{'+' if value > 0 else MINUS}{100 * abs(value):.1f}{SPACE}%"


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return NOTHING
    return "∞" if value > 0 else f"{MINUS}∞"


def _power(size: float) -> str:
    exponent = math.floor(math.log10(size))
    raised = str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{size / 10.0**exponent:.1f} × 10{raised}"
