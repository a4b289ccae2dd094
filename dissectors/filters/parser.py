"""The parser of filters, and of expressions in protocol files, which may compare and add any values.

A syntax error describes the expected tokens and their position.

The text may come from a script or a web page, so its length, its nesting and its number of conditions are
limited. The last two limits come from SQLite, whose parser has a stack of 100, and whose expressions have a
depth of up to 1000.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any, cast

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from kiebitz.dissectors.filters.errors import FilterError
from kiebitz.dissectors.filters.syntax import (
    WORDS,
    And,
    Call,
    Comparison,
    Constant,
    Expression,
    Has,
    Joined,
    Lookup,
    Name,
    Not,
    Operator,
    Or,
    Relation,
    Step,
    Sum,
    Term,
)
from kiebitz.dissectors.suggestions import did_you_mean

MAX_LENGTH = 10_000
MAX_NESTING = 30
MAX_CONDITIONS = 500

_COMMON = r"""
?or_terms: and_terms (_OR and_terms)*
?and_terms: term (_AND term)*

name: NAME (_DOT key | index)*
key: NAME   -> plain_key
   | STRING -> quoted_key

_OR: "||"
_AND: "&&"
NOT: "!"
COMPARE: /==|!=|<=|>=|<|>/
_OPEN: "("
_CLOSE: ")"
_OPEN_SET: "{"
_CLOSE_SET: "}"
_OPEN_INDEX: "["
CLOSE_INDEX: "]"
_COMMA: ","
_DOT: "."
NAME: /#|[^\W\d]\w*/
STRING: /"(\\.|[^"\\])*"|'(\\.|[^'\\])*'/s
// What is written with letters is lexed as a NAME first and retyped: `android` does not begin with `and`.
%declare _IN BOOLEAN
%ignore /\s+/
"""

FILTER_GRAMMAR = (
    _COMMON
    + r"""
?start: or_terms
?term: NOT+ plain -> negation
     | plain
?plain: _OPEN or_terms _CLOSE
      | name                                                    -> has
      | name COMPARE constant                                   -> comparison
      | name _IN _OPEN_SET constant (_COMMA constant)* _CLOSE_SET -> membership
index: _OPEN_INDEX NUMBER CLOSE_INDEX
constant: STRING | NUMBER | BOOLEAN
NUMBER: /-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?/
"""
)

_EXPRESSION_GRAMMAR = (
    _COMMON
    + r"""
?start: or_terms
?term: NOT+ compared -> negation
     | compared
?compared: sum
         | sum COMPARE sum                                      -> relation
         | sum _IN sum                                          -> relation_in
         | sum _IN _OPEN_SET sum (_COMMA sum)* _CLOSE_SET       -> relation_set
?sum: product (SIGN product)*
?product: plain (TIMES plain)*
?plain: _OPEN or_terms _CLOSE
      | name
      | constant
      | call
!call: NAME _OPEN sum (_COMMA sum)* _CLOSE
%extend key: NUMBER -> number_key
           | braces
!braces: _OPEN_SET sum _CLOSE_SET (BETWEEN _OPEN_SET sum _CLOSE_SET)*
// Text between the braces of one step: `{x},{y}`.
BETWEEN.2: /(?<=\})[^\s{}\[\]().'"]+(?=\{)/
index: _OPEN_INDEX sum CLOSE_INDEX -> computed_index
constant: STRING | NUMBER | BOOLEAN
        | SIGN NUMBER                -> negative
SIGN: /[+-]/
TIMES: "*" | "//" | "%"
NUMBER: /[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?/
"""
)

FUNCTIONS = {"min": 100, "max": 100, "abs": 1, "known": 1}
"""The functions of expressions, and their greatest number of values."""

_OPERATORS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?")

_HALF_OPERATORS = {"=": "==", "&": "&&", "|": "||"}

_EXPECTED: list[tuple[set[str], str]] = [
    ({"NAME", "BOOLEAN"}, "a name or a value (text in quotes, a number, true or false)"),
    ({"NOT"}, "a field name"),
    ({"BOOLEAN"}, "a value (text in quotes, a number, true or false)"),
    ({"NAME", "STRING"}, "a name"),
    ({"NUMBER"}, "an index"),
    ({"COMPARE"}, 'an operator such as "==" or "&&"'),
    ({"_AND"}, '"&&" or "||"'),
    ({"_OPEN_SET"}, '"{"'),
    ({"_CLOSE_SET"}, '"," or "}"'),
    ({"CLOSE_INDEX"}, '"]"'),
    ({"_CLOSE"}, '")"'),
    ({"$END"}, "no more"),
]
"""Expected tokens and their description; the first row whose tokens are all accepted is used."""

_OPENING = frozenset({"_OPEN", "_OPEN_SET", "_OPEN_INDEX"})
_CLOSING = frozenset({"_CLOSE", "_CLOSE_SET", "CLOSE_INDEX"})

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "'": "'"}


def parse(text: str) -> Expression:
    """Return the syntax tree of a filter. Raises FilterError."""
    return cast(Expression, _parse(text, _filters(), "filter"))


def parse_expression(text: str) -> Term:
    """Return the syntax tree of an expression of a protocol file. Raises FilterError."""
    return cast(Term, _parse(text, _expressions(), "expression"))


def _parse(text: str, lark: Lark, kind: str) -> object:
    _check_text(text)
    nesting = conditions = 0
    # Step by step, so that the bounds are checked while reading.
    parser = lark.parse_interactive(text)
    try:
        for token in parser.iter_parse():
            nesting += (token.type in _OPENING) - (token.type in _CLOSING)
            conditions += token.type in ("_AND", "_OR", "SIGN", "TIMES")
            if nesting > MAX_NESTING:
                raise FilterError(
                    f"more than {MAX_NESTING} parentheses in one another", text, token.start_pos or 0
                )
            if conditions >= MAX_CONDITIONS:
                raise FilterError(
                    f"more than {MAX_CONDITIONS} conditions", text, token.start_pos or 0, len(token)
                )
        end = Token("$END", "", len(text))
        return parser.feed_token(end)
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        raise _unexpected(text[at], at, text, _accepted(parser), kind) from None
    except UnexpectedToken as error:
        at = error.token.start_pos or 0
        raise _unexpected(str(error.token), at, text, _accepted(parser), kind) from None
    except _BadToken as error:
        token = error.token
        raise FilterError(error.message, text, token.start_pos or 0, len(token)) from None


def _check_text(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise FilterError(f"a filter is at most {MAX_LENGTH} characters long", text, MAX_LENGTH)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        # An argument in another encoding than UTF-8 arrives as lone surrogates, which SQLite cannot store.
        raise FilterError("this is not UTF-8", text, error.start, error.end - error.start) from None


def _accepted(parser: InteractiveParser) -> set[str]:
    accepted: set[str] = parser.accepts()  # type: ignore[no-untyped-call]  # lark's own has no annotation
    return accepted


def _unexpected(found: str, position: int, text: str, accepted: set[str], kind: str) -> FilterError:
    """Return the error for an unexpected token or character."""
    if not found:
        return FilterError(f"the {kind} ends too early: expected {_expected(accepted)}", text, position)
    if found in ("'", '"'):
        return FilterError("this text has no closing quote", text, position, len(text) - position)
    if found == ")" and "_CLOSE" not in accepted and "$END" in accepted:
        return FilterError('no "(" belongs to this ")"', text, position)
    if found in _HALF_OPERATORS:
        hint = did_you_mean(f'"{_HALF_OPERATORS[found]}"')
        return FilterError(f'"{found}" alone is not an operator', text, position, 1, hint)
    address = next((one for one in _ADDRESS.finditer(text) if one.start() <= position < one.end()), None)
    if address is not None:
        hint = f'write client contains "{address[0]}", or server'
        return FilterError("an address is a text", text, address.start(), len(address[0]), hint)
    hint_quotes = (
        f'text must be quoted: "{found}"'
        if "BOOLEAN" in accepted and "NAME" not in accepted and found.isidentifier()
        else None
    )
    return FilterError(f"expected {_expected(accepted)}", text, position, len(found), hint_quotes)


def _expected(accepted: set[str]) -> str:
    return next(words for tokens, words in _EXPECTED if tokens <= accepted)


class _BadToken(Exception):
    """A token that looks right and has no meaning, such as a number beyond bounds."""

    def __init__(self, message: str, token: Token) -> None:
        super().__init__(message)
        self.message = message
        self.token = token


def _typed(token: Token) -> Token:
    return token.update(type=WORDS.get(str(token), "NAME"))


@v_args(inline=True)
class _Builder(Transformer[Token, Any]):
    """Makes the common parts of a tree while the parser reduces, bottom up; nothing here recurses."""

    def or_terms(self, *terms: Expression) -> Expression:
        return Or(terms)

    def and_terms(self, *terms: Expression) -> Expression:
        return And(terms)

    def negation(self, *parts: Token | Expression) -> Expression:
        term = cast(Expression, parts[-1])
        return Not(term) if len(parts) % 2 == 0 else term

    def constant(self, token: Token) -> Constant:
        value = {"STRING": _text, "NUMBER": _number, "BOOLEAN": "true".__eq__}[token.type](token)
        return Constant(value, token.start_pos or 0, len(token))


@v_args(inline=True)
class _FilterBuilder(_Builder):
    """Makes the tree of a filter."""

    def has(self, name: Name) -> Expression:
        return Has(name)

    def comparison(self, name: Name, operator: Token, constant: Constant) -> Expression:
        return Comparison(name, cast(Operator, _OPERATORS.get(operator, str(operator))), (constant,))

    def membership(self, name: Name, *constants: Constant) -> Expression:
        return Comparison(name, "in", constants)

    def name(self, first: Token, *others: tuple[Step, int]) -> Name:
        start = first.start_pos or 0
        end = others[-1][1] if others else start + len(first)
        return Name((str(first), *(step for step, _ in others)), start, end - start)

    def plain_key(self, token: Token) -> tuple[Step, int]:
        return str(token), token.end_pos or 0

    def quoted_key(self, token: Token) -> tuple[Step, int]:
        return _text(token), token.end_pos or 0

    def index(self, number: Token, close: Token) -> tuple[Step, int]:
        if not number.isdigit():
            raise _BadToken("an index is a whole number from 0 up", number)
        return int(_number(number)), close.end_pos or 0


@v_args(inline=True)
class _TermBuilder(_Builder):
    """Makes the tree of an expression, whose names may be anywhere."""

    def relation(self, left: Term, operator: Token, right: Term) -> Term:
        return Relation(left, cast(Operator, _OPERATORS.get(operator, str(operator))), (right,))

    def relation_in(self, left: Term, right: Term) -> Term:
        return Relation(left, "in", (right,))

    def relation_set(self, left: Term, *members: Term) -> Term:
        return Relation(left, "in", members, is_set=True)

    def sum(self, first: Term, *others: Token | Term) -> Term:
        pairs = zip(others[::2], others[1::2], strict=True)
        return Sum(first, tuple((cast(Any, str(sign)), cast(Term, term)) for sign, term in pairs))

    def name(self, first: Token, *others: tuple[tuple[Step | Term, ...], int]) -> Any:
        start = first.start_pos or 0
        end = others[-1][1] if others else start + len(first)
        steps = (str(first), *(step for steps, _ in others for step in steps))
        return Lookup(steps, start, end - start)

    def plain_key(self, token: Token) -> Any:
        return (str(token),), token.end_pos or 0

    def quoted_key(self, token: Token) -> Any:
        return (_text(token),), token.end_pos or 0

    def number_key(self, token: Token) -> Any:
        # `2.3` are two steps.
        steps = str(token).split(".")
        if not all(map(str.isdigit, steps)):
            raise _BadToken("an index is a whole number from 0 up", token)
        return tuple(steps), token.end_pos or 0

    product = sum

    def call(self, name: Token, *parts: Token | Term) -> Call:
        arguments = tuple(part for part in parts if not isinstance(part, Token))
        if name not in FUNCTIONS:
            raise _BadToken(f"there is no function {name}, only {', '.join(FUNCTIONS)}", name)
        if len(arguments) > FUNCTIONS[name]:
            raise _BadToken(f"{name} takes one value", name)
        start = name.start_pos or 0
        return Call(str(name), arguments, start, (cast(Token, parts[-1]).end_pos or 0) - start)

    def braces(self, *parts: Token | Term) -> Any:
        step: Any = parts[1]
        if len(parts) > 3:
            step = Joined(
                tuple(
                    str(part) if isinstance(part, Token) else part
                    for part in parts
                    if not (isinstance(part, Token) and part.type in ("_OPEN_SET", "_CLOSE_SET"))
                )
            )
        return (step,), cast(Token, parts[-1]).end_pos or 0

    def key(self, braces: Any) -> Any:
        return braces

    def computed_index(self, term: Term, closed: Token) -> Any:
        return (term,), closed.end_pos or 0

    def negative(self, sign: Token, number: Token) -> Constant:
        value = _number(number)
        start = sign.start_pos or 0
        return Constant(value if sign == "+" else -value, start, (number.end_pos or 0) - start)


def _number(token: Token) -> int | float:
    try:
        value = float(token) if re.search("[.eE]", token) else int(token)
    except ValueError:  # Python's bound on the digits of an integer
        value = math.inf
    if math.isinf(value):
        raise _BadToken("this number is too large", token)
    return value


def _text(token: Token) -> str:
    """Return the value of a quoted string; unknown escapes are kept, for regular expressions."""
    raw = _ESCAPE.sub(_unescaped, token[1:-1])
    try:
        # Two \u escapes may be the halves of one character; one half alone is no text.
        return raw.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise _BadToken("half a surrogate pair is no character", token) from None


def _unescaped(match: re.Match[str]) -> str:
    digits = match[1] or match[2]
    if digits:
        return chr(int(digits, 16))
    return _ESCAPED.get(match[3], match[0])


def _lark(grammar: str, builder: Transformer[Token, Any]) -> Lark:
    """Return a parser, built for the first text, not at import: that takes some ten milliseconds."""
    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        transformer=builder,
        lexer_callbacks={"NAME": _typed},
    )


@functools.cache
def _filters() -> Lark:
    return _lark(FILTER_GRAMMAR, _FilterBuilder())


@functools.cache
def _expressions() -> Lark:
    return _lark(_EXPRESSION_GRAMMAR, _TermBuilder())
