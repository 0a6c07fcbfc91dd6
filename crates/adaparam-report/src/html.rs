//! The report as one page that needs nothing else: no font, no picture, no script from elsewhere. A small script of its own
//! lets figures answer the mouse and the keyboard; without it the page reads the same.
//!
//! Templates escape every text that is put into them. Line breaks stand where they keep the file readable and its
//! versions comparable.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::claim::{Claim, Tally, Verdict};
use crate::document::{Block, Report, Section, slug};
use crate::figure::{Svg, allowed, stylesheet};
use crate::inline::{Span, plain, spans};
use crate::plate::Plate;
use crate::table::{Align, Cell, Column, Row, Table, Tone};

/// Nothing may be loaded, whatever text found its way into the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
/// But for the one script, by its sum: text that became a script would not run.
const SCRIPT_SUM: &str = "sha256-997MfWImUM5zRxist9HMQbf8snAG0bKzGhHPYfMLSwo=";
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Anchor of the findings.
const FINDINGS: &str = "findings";
/// Anchor of the last section.
const PROVENANCE: &str = "provenance";
/// A table of more columns than this does not fit a phone.
const COLUMNS_ON_A_PHONE: usize = 3;

impl Report {
    /// The whole report as an HTML document.
    pub fn to_html(&self) -> String {
        let anchors = self.anchors();
        let page = Page {
            places: anchors.into_iter().zip(&self.sections).collect(),
        };
        let markup = html! {
            (DOCTYPE) "\n"
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta http-equiv="Content-Security-Policy" content={ (POLICY) "; script-src '" (SCRIPT_SUM) "'" };
                    link rel="icon" href="data:,";
                    title { (text(&plain(&self.title))) } "\n"
                    style { (PreEscaped(STYLE)) (PreEscaped(stylesheet())) }
                } "\n"
                body {
                    (self.navigation(&page))
                    main #top {
                        header {
                            h1 { (rich(&self.title)) }
                            @if !self.lead.is_empty() { p.lead { (rich(&self.lead)) } }
                            (self.score(&page))
                        } "\n"
                        (self.summary())
                        @for (anchor, section) in &page.places {
                            section id=(anchor) aria-labelledby={ (anchor) "-heading" } {
                                h2 id={ (anchor) "-heading" } { (rich(&section.heading)) } "\n"
                                (page.blocks(&section.blocks))
                            } "\n"
                        }
                        (self.origin())
                    }
                    @if self.has_figures() { script { (PreEscaped(SCRIPT)) } }
                } "\n"
            } "\n"
        };
        markup.into_string()
    }

    fn has_figures(&self) -> bool {
        fn any(blocks: &[Block]) -> bool {
            blocks.iter().any(|block| match block {
                Block::Figures(plates) => !plates.is_empty(),
                Block::Details { blocks, .. } => any(blocks),
                _ => false,
            })
        }
        self.sections.iter().any(|section| any(&section.blocks))
    }

    /// A bar of links that stays in sight where the screen is wide; pointless for a single section.
    fn navigation(&self, page: &Page<'_>) -> Markup {
        html! {
            @if page.places.len() > 1 {
                nav aria-label="Sections" {
                    ol {
                        @if !self.findings.is_empty() {
                            li { a href={ "#" (FINDINGS) } { "Findings" } }
                        }
                        @for (anchor, section) in &page.places {
                            li { a href={ "#" (anchor) } { (rich(section.link_name())) } }
                        }
                        @if !self.provenance.facts().is_empty() {
                            li { a href={ "#" (PROVENANCE) } { "Provenance" } }
                        }
                    }
                } "\n"
            }
        }
    }

    /// The verdicts of all claims at a glance, linked to the first section that lists some.
    fn score(&self, page: &Page<'_>) -> Markup {
        let tally = self.tally();
        let lists_claims = |section: &Section| {
            section
                .blocks
                .iter()
                .any(|block| matches!(block, Block::Claims(_)))
        };
        let target = page
            .places
            .iter()
            .find(|(_, section)| lists_claims(section))
            .map_or("top", |(anchor, _)| anchor);
        html! {
            @if tally != Tally::default() {
                p.score {
                    a href={ "#" (target) } {
                        @for verdict in Verdict::ALL {
                            @if tally.count(verdict) > 0 {
                                span.badge.(verdict.class()) {
                                    (verdict.mark()) " " (tally.count(verdict)) " " (verdict.words())
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// What came out, before everything else.
    fn summary(&self) -> Markup {
        html! {
            @if !self.findings.is_empty() {
                section id=(FINDINGS) class="findings" aria-labelledby={ (FINDINGS) "-heading" } {
                    h2 id={ (FINDINGS) "-heading" } { "Findings" } "\n"
                    ol { @for finding in &self.findings { li { (rich(finding)) } "\n" } }
                } "\n"
            }
        }
    }

    /// How to get the same numbers again.
    fn origin(&self) -> Markup {
        let facts = self.provenance.facts();
        html! {
            @if !facts.is_empty() {
                section id=(PROVENANCE) class="provenance" aria-labelledby={ (PROVENANCE) "-heading" } {
                    h2 id={ (PROVENANCE) "-heading" } { "Provenance" }
                    dl {
                        @for fact in &facts {
                            dt { (text(&fact.name)) }
                            dd { @if fact.literal { (code(&fact.value)) } @else { (text(&fact.value)) } } "\n"
                        }
                    }
                } "\n"
            }
        }
    }
}

/// What a part of the page needs to know of the rest: the sections that can be linked to, by their anchors.
struct Page<'a> {
    places: Vec<(String, &'a Section)>,
}

impl Page<'_> {
    fn blocks(&self, blocks: &[Block]) -> Markup {
        html! {
            @for block in blocks {
                @match block {
                    Block::Heading(text) => { h3 { (rich(text)) } },
                    Block::Paragraph(text) => { p { (rich(text)) } },
                    Block::List(points) => {
                        ul { @for point in points { li { (rich(point)) } "\n" } }
                    },
                    Block::Table(given) => { (table(given)) },
                    Block::Figures(plates) => { (figures(plates)) },
                    Block::Claims(claims) => {
                        ul.claims { @for claim in claims { (self.claim(claim)) "\n" } }
                    },
                    Block::Details { summary, blocks } => {
                        details {
                            summary { (rich(summary)) } "\n"
                            div { (self.blocks(blocks)) }
                        }
                    },
                } "\n"
            }
        }
    }

    fn claim(&self, claim: &Claim) -> Markup {
        let verdict = claim.verdict;
        let target = claim.section.as_deref().map(slug);
        let place = self
            .places
            .iter()
            .find(|(anchor, _)| Some(anchor) == target.as_ref());
        html! {
            li {
                span.badge.(verdict.class()) { (verdict.mark()) " " (verdict.words()) }
                div {
                    p { (rich(&claim.text)) }
                    @if !claim.evidence.is_empty() || place.is_some() {
                        p.evidence {
                            (rich(&claim.evidence))
                            @if let Some((anchor, section)) = place {
                                " " a href={ "#" (anchor) } { "See " (rich(&section.heading)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The frame around the table scrolls, so that a wide table does not widen the page.
fn table(table: &Table) -> Markup {
    html! {
        figure.table {
            @if !table.caption.is_empty() { figcaption { (rich(&table.caption)) } "\n" }
            @if table.columns.len() > COLUMNS_ON_A_PHONE {
                p.more aria-hidden="true" { (table.columns.len()) " columns: swipe sideways to see all of them →" } "\n"
            }
            div.scroll tabindex="0" role="group" aria-label=(text(&plain(&table.caption))) {
                table {
                    thead { tr { @for column in &table.columns { (heading(column)) } } } "\n"
                    tbody { @for one in &table.rows { (row(table, one)) "\n" } }
                }
            } "\n"
            @for note in &table.notes { p.note { (rich(note)) } "\n" }
        }
    }
}

fn heading(column: &Column) -> Markup {
    html! {
        th scope="col" class=[alignment(column)] {
            (rich(&column.name))
            @if !column.unit.is_empty() { " " span.unit { (rich(&column.unit)) } }
        }
    }
}

/// A row, named by its first cell.
fn row(table: &Table, row: &Row) -> Markup {
    html! {
        tr class=[row.begins_group.then_some("group")] {
            @for (index, (column, one)) in table.cells(row).enumerate() {
                @if index == 0 {
                    th scope="row" class=[alignment(column)] { (cell(one)) }
                } @else {
                    td class=[alignment(column)] { (cell(one)) }
                }
            }
        }
    }
}

fn cell(cell: Option<&Cell>) -> Markup {
    html! {
        @if let Some(cell) = cell {
            @match cell.tone {
                Tone::Normal => { (rich(&cell.text)) },
                Tone::Best => { strong { (rich(&cell.text)) } },
                Tone::Quoted => { i { (rich(&cell.text)) } },
            }
            @if !cell.detail.is_empty() { " " small { (rich(&cell.detail)) } }
        }
    }
}

fn alignment(column: &Column) -> Option<&'static str> {
    match column.align {
        Align::Left => None,
        Align::Right => Some("right"),
    }
}

fn figures(plates: &[Plate]) -> Markup {
    let narrowest = plates
        .iter()
        .map(|plate| plate.drawing.size().width)
        .reduce(f64::min);
    let least = narrowest.map_or(300.0, |width| (width * 0.8).min(420.0));
    html! {
        div.plates style=(format_args!("--least:{least:.0}px")) {
            @for plate in plates {
                figure {
                    @match &plate.narrow {
                        Some(narrow) => { (drawing("wide", &plate.drawing)) (drawing("narrow", narrow)) },
                        None => { (drawing("only", &plate.drawing)) },
                    }
                    @if !plate.caption.is_empty() { figcaption { (rich(&plate.caption)) } }
                } "\n"
            }
        }
    }
}

fn drawing(class: &str, drawing: &Svg) -> Markup {
    let most = drawing.size().width * 1.25;
    html! {
        div.(class) style=(format_args!("max-width:{most:.0}px")) { (PreEscaped(drawing.inline())) } "\n"
    }
}

/// Code. A word with a hyphen, such as an option, is not broken at it, unless it is as long as a line; a path of names, such
/// as a key, is broken behind a dot before it is broken inside a name.
fn code(literal: &str) -> Markup {
    html! {
        code {
            @for (index, word) in literal.split(' ').enumerate() {
                @if index > 0 { " " }
                @if word.contains('-') && word.len() <= 28 {
                    span.word { (text(word)) }
                } @else {
                    @for (index, name) in word.split_inclusive('.').enumerate() {
                        @if index > 0 { wbr; }
                        (text(name))
                    }
                }
            }
        }
    }
}

/// Text with its code marked.
fn rich(given: &str) -> Markup {
    html! {
        @for span in spans(given) {
            @match span {
                Span::Plain(plain) => { (text(plain)) },
                Span::Code(literal) => { (code(literal)) },
            }
        }
    }
}

/// Text whose characters are all allowed in a page; the template that takes it escapes it.
fn text(given: &str) -> String {
    given.chars().map(allowed).collect()
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::Provenance;
    use crate::sample::{self, EVIL};
    use crate::well_formed::{assert_well_formed, parsed};

    /// The page with those elements closed that HTML leaves open.
    fn as_xml(page: &str) -> String {
        let pieces: Vec<String> = page
            .split('<')
            .map(|piece| match piece.split_once(' ') {
                Some(("meta" | "link", _)) => piece.replacen('>', "/>", 1),
                _ => piece.to_owned(),
            })
            .collect();
        pieces.join("<")
    }

    #[test]
    fn the_page_is_well_formed() {
        assert_well_formed(&as_xml(&sample::report().to_html()));
        assert_well_formed(&as_xml(&Report::default().to_html()));
    }

    #[test]
    fn every_text_reads_as_it_was_given() {
        let page = as_xml(&sample::report().to_html());
        let document = parsed(&page);
        let holds = |name: &str, given: &str| {
            let mut elements = document
                .descendants()
                .filter(|node| node.has_tag_name(name));
            elements.any(|node| {
                let texts = node.descendants().filter(roxmltree::Node::is_text);
                texts.filter_map(|text| text.text()).collect::<String>() == given
            })
        };
        let given = plain(EVIL);
        for name in [
            "title",
            "h1",
            "h2",
            "a",
            "p",
            "li",
            "figcaption",
            "th",
            "td",
            "summary",
        ] {
            assert!(holds(name, &given), "<{name}> does not read {given}");
        }
        assert!(holds("dd", EVIL), "<dd> does not read {EVIL}");
        let mut labels = document
            .descendants()
            .filter_map(|node| node.attribute("aria-label"));
        assert!(labels.any(|label| label == given));
    }

    #[test]
    fn characters_that_a_page_forbids_are_marked() {
        let report = Report {
            title: "a\u{0}b `c\u{1b}d`".into(),
            ..Report::default()
        };
        let page = report.to_html();
        assert!(page.contains("<h1>a\u{fffd}b <code>c\u{fffd}d</code></h1>"));
        assert!(page.contains("<title>a\u{fffd}b c\u{fffd}d</title>"));
    }

    #[test]
    fn text_never_becomes_markup() {
        let page = sample::report().to_html();
        assert!(!page.contains("<b>"));
        assert!(page.contains("&lt;b&gt;a|b&lt;/b&gt; &amp; &quot;c&quot;"));
        assert!(page.contains("<code>i|j</code>"));
        assert_eq!(code("a.b").into_string(), "<code>a.<wbr>b</code>");
    }

    #[test]
    fn the_page_asks_for_nothing_from_elsewhere() {
        let page = sample::report().to_html();
        for call in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(call), "the page contains {call}");
        }
    }

    #[test]
    fn only_the_script_of_the_page_may_run() {
        let page = sample::report().to_html();
        assert_eq!(page.matches("<script").count(), 1);
        assert!(page.contains(&format!("<script>{SCRIPT}</script>")));
        let sum = format!("sha256-{}", base64(&Sha256::digest(SCRIPT)));
        assert_eq!(SCRIPT_SUM, sum, "SCRIPT_SUM is of another script");
        assert!(
            page.contains(&format!("; script-src '{sum}'"))
                || page.contains(&format!("script-src &#39;{sum}"))
        );
        assert!(!Report::default().to_html().contains("<script"));
    }

    #[test]
    fn the_script_can_stand_in_a_page_without_escaping() {
        assert!(!SCRIPT.contains(['<', '&']));
    }

    fn base64(bytes: &[u8]) -> String {
        const SIGNS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let groups = bytes.chunks(3).flat_map(|group| {
            let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            (0..4).map(move |sign| {
                let index = bits >> (18 - 6 * sign) & 63;
                let is_there = sign <= group.len();
                if is_there {
                    SIGNS[index as usize] as char
                } else {
                    '='
                }
            })
        });
        groups.collect()
    }

    #[test]
    fn every_link_inside_the_page_has_a_target() {
        let page = sample::report().to_html();
        let links: Vec<&str> = page
            .split("href=\"#")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(links.len() >= 4, "{links:?}");
        for link in links {
            assert_eq!(
                page.matches(&format!("id=\"{link}\"")).count(),
                1,
                "target of #{link}"
            );
        }
    }

    #[test]
    fn verdicts_are_words_and_not_only_colours() {
        let page = sample::report().to_html();
        for words in [
            "✓ met",
            "✗ not met",
            "○ not run",
            "≈ not decided",
            "▲ exceeded",
            "– not judged at this scale",
            "✓ 1 met",
        ] {
            assert!(page.contains(words), "{words}");
        }
    }

    #[test]
    fn a_short_report_has_no_navigation_and_an_unknown_origin_no_section() {
        let report = Report {
            sections: vec![Section::new("Only")],
            provenance: Provenance::default(),
            ..Report::default()
        };
        let page = report.to_html();
        assert!(!page.contains("<nav"));
        assert!(!page.contains("id=\"provenance\""));
    }

    #[test]
    fn findings_come_before_all_sections_and_are_linked_to() {
        let page = sample::report().to_html();
        let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
        assert!(place("<section id=\"findings\"") < place("<section id=\"claims\""));
        assert!(place("a second finding") < place("<section id=\"claims\""));
        assert!(page.contains("<a href=\"#findings\">Findings</a>"));
        assert!(!Report::default().to_html().contains("findings\""));
    }

    #[test]
    fn headings_are_headings_in_order_and_name_their_sections() {
        let page = as_xml(&sample::report().to_html());
        let document = parsed(&page);
        let levels: Vec<u8> = document
            .descendants()
            .filter_map(|node| match node.tag_name().name() {
                "h1" => Some(1),
                "h2" => Some(2),
                "h3" => Some(3),
                _ => None,
            })
            .collect();
        assert_eq!(levels[0], 1);
        assert!(!levels[1..].contains(&1), "one heading is the first");
        assert!(levels.contains(&3));
        assert!(
            levels.windows(2).all(|pair| pair[1] <= pair[0] + 1),
            "{levels:?}"
        );
        for section in document
            .descendants()
            .filter(|node| node.has_tag_name("section"))
        {
            let name = section.attribute("aria-labelledby");
            let mut children = section.descendants();
            let found =
                children.any(|node| node.has_tag_name("h2") && node.attribute("id") == name);
            assert!(name.is_some() && found, "{:?}", section.attribute("id"));
        }
    }

    #[test]
    fn a_short_name_stands_in_the_bar_and_the_long_one_in_the_heading() {
        let report = Report {
            sections: vec![
                Section::new("What adaptation does to a matrix").called("Matrix"),
                Section::new("Other"),
            ],
            ..Report::default()
        };
        let page = report.to_html();
        assert!(page.contains("href=\"#what-adaptation-does-to-a-matrix\">Matrix</a>"));
        assert!(page.contains(">What adaptation does to a matrix</h2>"));
        assert!(page.contains("href=\"#other\">Other</a>"));
    }

    #[test]
    fn a_table_too_wide_for_a_phone_says_so() {
        let of_columns = |amount: usize| {
            table(&Table {
                columns: vec![Column::text("c"); amount],
                ..Table::default()
            })
            .into_string()
        };
        assert!(of_columns(6).contains("6 columns: swipe sideways"));
        assert!(!of_columns(3).contains("swipe"));
    }

    #[test]
    fn wide_drawings_come_with_a_narrow_one() {
        let page = sample::report().to_html();
        assert_eq!(
            page.matches("class=\"wide\"").count(),
            page.matches("class=\"narrow\"").count()
        );
        assert_eq!(page.matches("class=\"narrow\"").count(), 1);
    }
}
