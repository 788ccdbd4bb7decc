"""Tests of safe injection on programs by many authors: the modules of the standard library.

Most of them use frames, modules or stdout and would be refused. So these tests leave the refusals out and put
prints at every point that definite assignment allows.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from tests.trace_gym.debug_prints import run, same_tree, without_prints
from trace_gym.inject import inject, unchanged
from trace_gym.inject.closed import closed_scopes
from trace_gym.inject.safe import place
from trace_gym.syntax import ParsedProgram, compiles

_LIBRARY = Path(sysconfig.get_paths()["stdlib"])


def _text(module: str) -> str:
    with open(_LIBRARY / f"{module}.py", encoding="utf-8", newline="") as file:
        return file.read()


@pytest.mark.slow
def test_what_is_inserted_is_prints_alone() -> None:
    modules = [path.stem for path in sorted(_LIBRARY.glob("*.py")) if path.stat().st_size < 40_000]
    prints = 0
    for module in modules:
        text = _text(module)
        for injected in (place(ParsedProgram(text), seed=len(text), most=10**6), inject(text, 0)):
            assert without_prints(injected) == text
            assert same_tree(injected, text)
            assert compiles(injected)
            prints += injected.count("__DBG_")
    assert len(modules) >= 100
    assert prints > 4000


_USES = {
    "_pydecimal": "print((Decimal('1.1') / 3).quantize(Decimal('0.01')), Decimal(2).sqrt())",
    "argparse": "p = ArgumentParser(); p.add_argument('-n', type=int); print(p.parse_args(['-n', '3']).n)",
    "ast": "print(unparse(parse('x = [i for i in range(3) if i]')))",
    "base64": "print(b32encode(b'abc'), a85encode(b'abcde'), b64decode('YWJj'))",
    "bisect": "print(bisect_left([1, 2, 4], 3), bisect([1, 1], 1))",
    "calendar": "print(TextCalendar().formatmonth(2024, 2))",
    "colorsys": "print(rgb_to_hls(0.25, 0.5, 1.0), hsv_to_rgb(0.5, 0.5, 0.5))",
    "configparser": "c = ConfigParser(); c.read_string('[a]\\nb = 1\\nc = %(b)s2'); print(c['a']['c'])",
    "contextlib": "s = ExitStack(); s.callback(print, 'called'); s.close()\nwith suppress(KeyError): {}[1]",
    "copy": "a = [1, {2: [3]}]; b = deepcopy(a); b[1][2].append(4); print(a, b)",
    "csv": "print(Sniffer().sniff('a;b;c\\n1;2;3\\n').delimiter)",
    "difflib": "print(list(ndiff(['one', 'two'], ['one', 'tow'])), get_close_matches('aple', ['apple']))",
    "fnmatch": "print(filter(['a.py', 'b.txt'], '*.py'), translate('a[!b]?*'))",
    "fractions": "print(Fraction(3, 4) + Fraction('1/3'), Fraction(0.3).limit_denominator(100))",
    "functools": "print(reduce(lambda a, b: a * b, [1, 2, 3]), partial(int, base=2)('11'))",
    "getopt": "print(gnu_getopt(['-a', 'x', '--b=c'], 'a', ['b=']))",
    "graphlib": "print(list(TopologicalSorter({1: [2], 2: [3]}).static_order()))",
    "heapq": "h = [5, 3, 8, 1]; heapify(h); print(heappop(h), nsmallest(2, h), list(merge([1, 4], [2])))",
    "ipaddress": "print(ip_network('10.0.0.0/30').num_addresses, ip_address('::1').exploded)",
    "numbers": "print(issubclass(int, Integral))",
    "operator": "print(itemgetter(1, 0)('ab'), methodcaller('upper')('a'))",
    "optparse": "p = OptionParser(); p.add_option('-n', type='int'); print(p.parse_args(['-n', '3'])[0].n)",
    "pprint": "print(pformat({'a': list(range(30)), 'b': 'x' * 90}, width=40))",
    "quopri": "print(encodestring(b'a=b \\n'), decodestring(b'a=3Db'))",
    "random": "r = Random(1); print(r.sample(range(9), 3), r.choices('ab', k=3), r.gauss(0, 1))",
    "shlex": "print(split('a \"b c\" d#e'), quote('a b'))",
    "statistics": "print(mean([1, 2, 4]), median([3, 1]), variance([1, 2, 4]), NormalDist().cdf(0.5))",
    "string": "print(Template('$a ${b}').substitute(a=1, b=2), Formatter().format('{0}', 1))",
    "stringprep": "print(in_table_a1('a'), map_table_b2('A'))",
    "textwrap": "print(fill('a b c ' * 9, 20), dedent('  a\\n   b'), shorten('a b c', 40))",
    "tokenize": "print([t.string for t in generate_tokens(iter(['x = 1\\n', '']).__next__)])",
}  # fmt: skip
"""The use of each module, which prints."""


@pytest.mark.slow
@pytest.mark.parametrize("module", _USES)
def test_a_module_full_of_prints_works_as_before(module: str, tmp_path: Path) -> None:
    # The module's text comes before its use, and runs as a module, not as a script.
    program = ParsedProgram(_text(module).replace("__main__", "a script") + "\n" + _USES[module] + "\n")
    exit_code, out, error = run(program.code, tmp_path)
    assert (exit_code, error) == (0, "") and out
    injected = place(program, seed=1, most=10**6, closed=closed_scopes(program.tree))
    assert injected != program.code
    exit_code, injected_out, error = run(injected, tmp_path)
    assert (exit_code, error) == (0, "")
    assert unchanged(out, injected_out)
