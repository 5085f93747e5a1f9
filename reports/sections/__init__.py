"""The sections of a report, in the order of the page: one file and one line here adds one.

Each entry names a function `info(frames) -> SectionInfo | None`; None leaves the section out.
"""

SUMMARY = "reports.sections.summary:info"  # also takes the other sections, whose findings it repeats

SECTIONS = (
    SUMMARY,
    "reports.sections.headline:info",
    "reports.sections.across:info",
    "reports.sections.curves:info",
    "reports.sections.accepted:info",
    "reports.sections.oracles:info",
    "reports.sections.order_study:info",
    "reports.sections.ladder:info",
    "reports.sections.acceptance:info",
    "reports.sections.transfer:info",
    "reports.sections.temperature:info",
    "reports.sections.beyond:info",
    "reports.sections.sizes:info",
    "reports.sections.identity:info",
    "reports.sections.approximate:info",
    "reports.sections.timing:info",
    "reports.sections.gaps:info",
    "reports.sections.traces:info",
    "reports.sections.provenance:info",
    "reports.sections.downloads:info",
)
