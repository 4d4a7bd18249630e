"""The page in a real browser: it draws, answers, and does nothing else."""

from __future__ import annotations

import pytest
from tests.report.examples import HOSTILE, example, notebook_of, page_of

from unskew.report.untrusted import visible

CONTRAST = """() => {
  const light = (part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const parse = (text) => {
    const numbers = text.match(/[\\d.]+/g).map(Number);
    return { rgb: numbers.slice(0, 3).map((part) => part / 255), alpha: numbers[3] ?? 1 };
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map(light);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const { rgb, alpha } = parse(getComputedStyle(at).backgroundColor);
      if (alpha === 1) return rgb;
    }
    return [1, 1, 1];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || element.closest("script, style, noscript")) continue;
    if (!element.checkVisibility()) continue;
    if (element.closest(".visually-hidden, .skip, [hidden]")) continue;
    const style = getComputedStyle(element);
    const ink = parse(element.namespaceURI.endsWith("svg") ? style.fill : style.color).rgb;
    const [high, low] = [luminance(ink), luminance(ground(element))].sort((a, b) => b - a);
    found.push([(high + 0.05) / (low + 0.05), text.slice(0, 40)]);
  }
  return found;
}"""


@pytest.mark.parametrize(
    ("name", "static"),
    [("hopeless", False), ("unweighted", False), ("hostile", False), ("hostile", True)],
)
def test_on_a_phone_charts_are_drawn_quietly_and_nothing_leaves_the_screen(opened, name, static):
    with opened(page_of(name, static), width=360) as page:  # watches console, requests, dialogs
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        right = page.evaluate("""Math.max(
          ...[...document.querySelectorAll(".chart svg, h1, h2, h3, p")]
            .filter((part) => part.checkVisibility() && !part.closest(".skip, .visually-hidden"))
            .map((part) => part.getBoundingClientRect().right))""")
        assert right <= 360
        sizes = page.evaluate("""[...document.querySelectorAll(".chart")].map((place) => {
          const charts = [...place.querySelectorAll("svg")];
          const shown = charts.filter((chart) => chart.checkVisibility());
          const size = shown[0].getBoundingClientRect();
          return shown.length === 1 ? [size.width, size.height] : [0, 0];
        })""")
        assert sizes
        assert all(width > 200 and height > 50 for width, height in sizes)


@pytest.mark.parametrize("static", [False, True])
def test_every_distribution_has_an_axis_of_shares(opened, static):
    with opened(page_of("survey", static)) as page:
        axes = page.evaluate("""[...document.querySelectorAll(".grid .chart")].map((chart) =>
          [...chart.querySelectorAll("text")].map((part) => part.textContent)
            .filter((text) => /^\\d+(\\.\\d)? %$/.test(text)))""")
        assert len(axes) == 12
        assert all(len(set(texts)) == len(texts) >= 3 for texts in axes)


def test_hostile_text_stays_inert_also_under_the_pointer(opened):
    with opened(page_of("hostile")) as page:
        seen = set()
        for mark in page.locator("[data-chart='love'] .mark-symbol path").all()[:4]:
            mark.hover(force=True)
            seen.add(page.locator("#tip").inner_text())
            assert page.locator("#tip :not(div, span, bdi)").count() == 0
        assert any("<script>window.hit = 1</script>" in text for text in seen)
        page.fill("input[type=search]", "<script>")
        page.click("#feature-table thead button >> nth=0")
        assert page.evaluate("window.hit") is None
        assert page.locator("main img").count() == 0
        assert page.inner_text("h1") == visible(f"Costly: {HOSTILE[0]}", 600)


def test_hostile_text_is_inert_without_scripts_and_in_a_notebook(opened):
    with opened(page_of("hostile", True)) as page:
        assert page.evaluate("window.hit") is None
        assert page.locator("img, script").count() == 0
        assert page.locator(".chart svg").count() >= 14
    notebook = (
        "<!doctype html><style>* { color: red !important; font-size: 40px }</style>"
        f"<p>cell</p>{notebook_of('hostile')}"
    )
    with opened(notebook) as page:
        frame = page.frame_locator("iframe")
        assert "Costly" in frame.locator("h1").inner_text()
        colour = frame.locator("h1").evaluate("e => getComputedStyle(e).color")
        assert colour != "rgb(255, 0, 0)"
        assert page.evaluate("window.hit") is None


def test_the_policy_stops_what_the_escapes_might_miss(opened):
    with opened(page_of("unbiased", True), quiet=False) as page:  # it reports refusals
        failures: list[str] = []
        page.on("requestfailed", lambda request: failures.append(request.failure))
        page.evaluate("""() => {
          document.body.insertAdjacentHTML(
            "beforeend", "<img src='https://example.invalid/x.png' onerror='window.hit = 1'>");
          const script = document.createElement("script");
          script.textContent = "window.hit = 2";
          document.body.append(script);
        }""")
        refused = page.evaluate("""async () => {
          const tried = [];
          await new Promise((done) => setTimeout(() => {  // outside of this privileged call
            try { (0, eval)("1"); } catch { tried.push("eval"); }
            done();
          }));
          try { await fetch("https://example.invalid/"); } catch { tried.push("fetch"); }
          return tried;
        }""")
        page.wait_for_timeout(100)
        assert refused == ["eval", "fetch"]
        assert set(failures) == {"csp"}
        assert page.evaluate("window.hit") is None


def names(page) -> list[str]:
    return page.locator("#feature-table tbody tr:not([hidden]) th").all_inner_texts()


def test_search_narrows_the_table_of_features(opened):
    with opened(page_of("8")) as page:
        everything = names(page)
        rows = sum(len(feature.lines) for feature in example("8").bias.features)
        assert len(everything) == rows > 8
        page.fill("input[type=search]", "QUESTION")
        assert names(page) == [name for name in everything if "question" in name]
        assert page.inner_text(".search [role=status]") == f"{len(names(page))} of {rows}"
        page.fill("input[type=search]", "no such name")
        assert names(page) == []
        page.fill("input[type=search]", "")
        assert names(page) == everything


def test_sorting_puts_the_largest_first_and_nothing_last(opened):
    features = example("hopeless").bias.features
    with opened(page_of("hopeless")) as page:
        heading = page.locator("#feature-table thead th")
        heading.nth(2).locator("button").click()
        assert heading.nth(2).get_attribute("aria-sort") == "descending"
        known = [(feature.name, line) for feature in features for line in feature.lines]
        known.sort(key=lambda entry: -abs(entry[1].before))
        assert names(page) == [*(name for name, _ in known), "comment"]
        heading.nth(2).locator("button").click()
        assert heading.nth(2).get_attribute("aria-sort") == "ascending"
        assert names(page) == [*(name for name, _ in reversed(known)), "comment"]
        heading.nth(0).locator("button").click()
        assert heading.nth(2).get_attribute("aria-sort") is None
        assert names(page)[:4] == ["age", "bedrooms", "comment", "country"]


def test_the_keyboard_reaches_everything(opened):
    with opened(page_of("8")) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        assert page.locator(".skip").bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.focus("input[type=search]")
        page.keyboard.press("Tab")  # the scrolling region, then the first heading
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.tagName") == "BUTTON"
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        assert names(page)[0] == "age"
        assert page.locator("#feature-table th").first.get_attribute("aria-sort") == "ascending"
        page.keyboard.press("Space")
        assert names(page)[0] == "years at address"
        page.focus("#theme-auto")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert page.locator("#theme-dark").is_checked()


@pytest.mark.parametrize("static", [False, True])
def test_light_and_dark_follow_the_reader_and_the_switch(opened, static):
    def look(page) -> tuple[str, str]:
        return page.evaluate("""() => [
          getComputedStyle(document.body).backgroundColor,
          getComputedStyle(document.querySelector(".chart text")).fill,
        ]""")

    with opened(page_of("8", static), color_scheme="light") as page:
        light = look(page)
        page.locator("label[for=theme-dark]").click()
        switched = look(page)
        page.locator("label[for=theme-auto]").click()
        page.emulate_media(color_scheme="dark")
        dark = look(page)
        page.locator("label[for=theme-light]").click()
        assert switched == dark
        assert look(page) == light
        assert all(one != other for one, other in zip(light, dark, strict=True))
        page.locator("label[for=theme-dark]").click()
        page.emulate_media(media="print")
        assert look(page)[0] == "rgb(255, 255, 255)"
        assert look(page)[1] == light[1]
        assert not page.locator(".theme").is_visible()


@pytest.mark.parametrize(("name", "static"), [("survey", False), ("hopeless", True)])
def test_every_text_has_the_contrast_that_readers_need(opened, name, static):
    with opened(page_of(name, static)) as page:
        page.evaluate(
            "document.querySelectorAll('details').forEach((part) => { part.open = true; })"
        )
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            found = page.evaluate(CONTRAST)
            assert len(found) > 300
            assert [entry for entry in found if entry[0] < 4.5] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_stand_out_from_their_ground(opened, scheme):
    marks = ["sample", "weighted", "population-line", "line", "good", "caution", "bad"]
    with opened(page_of("unbiased", True), color_scheme=scheme) as page:
        page.evaluate(
            """(marks) => {
              const place = document.createElement("div");
              place.className = "card";
              place.append(...marks.map((mark) => {
                const text = document.createElement("b");
                text.textContent = `mark ${mark}`;
                text.style.color = `var(--${mark})`;
                return text;
              }));
              document.body.append(place);
            }""",
            marks,
        )
        found = [entry for entry in page.evaluate(CONTRAST) if entry[1].startswith("mark ")]
        assert len(found) == len(marks)
        assert [entry for entry in found if entry[0] < 3] == []


@pytest.mark.parametrize("static", [False, True])
def test_it_prints(opened, static):
    with opened(page_of("8", static)) as page:
        printed = page.pdf()
        assert printed.startswith(b"%PDF")
        assert 2 <= printed.count(b"/Type /Page\n") <= 12
        page.emulate_media(media="print")
        assert not page.locator("input[type=search]").is_visible()
        assert page.locator("#feature-table").is_visible()


@pytest.mark.parametrize("width", [390, 1100])
@pytest.mark.parametrize("name", ["survey", "unweighted", "hopeless"])
def test_no_tile_of_figures_is_empty(opened, name, width):
    with opened(page_of(name, True), width=width) as page:
        empty = page.evaluate("""(() => {
          const place = document.querySelector(".figures").getBoundingClientRect();
          const tiles = [...document.querySelectorAll(".figure")]
            .map((tile) => tile.getBoundingClientRect());
          const covered = tiles.reduce((sum, tile) => sum + tile.width * tile.height, 0);
          return 1 - covered / (place.width * place.height);
        })()""")
        assert empty < 0.03  # lines between tiles
