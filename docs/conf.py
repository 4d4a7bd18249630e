"""How Sphinx builds the site: ``make docs``, or ``make docs-smoke`` without running the gallery."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import unskew  # noqa: E402
from docs.building import gallery, pages  # noqa: E402

pages.make()
warnings.filterwarnings("ignore", module=r"pyspark\.")  # they name files of this machine
SMOKE = os.environ.get("UNSKEW_DOCS") == "smoke"

project = "unskew"
author = "the unskew developers"
copyright = author  # noqa: A001  Sphinx's name for it
version = release = unskew.__version__

extensions = [
    "docs.building",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # the formulas need no network
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = [
    "**/.ipynb_checkpoints",
    "gallery/sg_execution_times.rst",
]
suppress_warnings = ["config.cache"]  # the gallery's settings hold a function

myst_enable_extensions = [
    "attrs_block",
    "attrs_inline",
    "colon_fence",
    "deflist",
    "dollarmath",
    "html_image",
]
myst_heading_anchors = 3
myst_links_external_new_tab = False

autosummary_generate = True
autosummary_filename_map = {"unskew.estimate": "unskew.estimate-function"}  # beside Estimate
autodoc_typehints = "none"  # numpydoc's parameters say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
add_module_names = False
templates_path = ["_templates"]

mathjax_path = "mathjax/tex-chtml.js"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = gallery.settings(run=not SMOKE)

html_theme = "pydata_sphinx_theme"
html_title = f"unskew {release}"
html_static_path = ["_static"]
html_css_files = ["unskew.css"]
html_extra_path = [str(pages.EXTRA)]
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # excerpts are fetched, which a page on a disk may not do
html_theme_options = {
    "logo": {"text": "unskew"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "start": [], "which-method": [], "changelog": []}
