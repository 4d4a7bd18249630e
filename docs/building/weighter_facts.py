"""``{weighter-facts} NAME``: a table of what a weighter's class says of itself."""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class WeighterFacts(SphinxDirective):
    """The facts of one weighter, read from the code, so that they are never stale."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the parsed table."""
        name = self.arguments[0]
        lines = ["```{list-table}", ":widths: 30 70", ":class: facts", ""]
        for label, text in facts(name):
            lines += [f"* - {label}", f"  - {text}"]
        return self.parse_text_to_nodes("\n".join([*lines, "```"]))


def facts(name: str) -> Iterator[tuple[str, str]]:
    """Yield what the class says: its assumption, what it can do, its names."""
    import unskew
    from unskew.cli.methods import METHODS
    from unskew.weighters.inductive import InductiveWeighter

    weighter = getattr(unskew, name)
    yield "Reference", f"{{py:obj}}`unskew.{name}`"
    yield "It assumes that", weighter.traits.assumes
    yield "`uncovered_` is", weighter.traits.uncovered_means
    yield "It weighs new rows", "yes" if issubclass(weighter, InductiveWeighter) else "no"
    methods = [f"`--method {method}`" for method, (class_, _) in METHODS.items() if class_ == name]
    yield "On the command line", ", ".join(methods) or "not offered"
