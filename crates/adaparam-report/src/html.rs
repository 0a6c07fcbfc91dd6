//! The report as one page that needs nothing else: no script, no font, no picture from elsewhere.

use std::fmt::{self, Write as _};

use crate::claim::{Claim, Tally, Verdict};
use crate::document::{Block, Report, Section, slug};
use crate::figure::{Svg, escape, stylesheet};
use crate::inline::{Span, plain, spans};
use crate::plate::Plate;
use crate::table::{Align, Column, Table, Tone};

/// Nothing may be loaded, whatever text found its way into the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
const STYLE: &str = include_str!("page.css");
/// Anchor of the last section.
const PROVENANCE: &str = "provenance";

impl Report {
    /// The whole report as an HTML document.
    pub fn to_html(&self) -> String {
        let anchors = self.anchors();
        let headings = self.sections.iter().map(|section| section.heading.as_str());
        let mut page = Page {
            markup: String::new(),
            places: anchors.iter().map(String::as_str).zip(headings).collect(),
        };
        page.put(format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <meta name=\"color-scheme\" content=\"light dark\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n\
             <link rel=\"icon\" href=\"data:,\"/>\n<title>{}</title>\n<style>\n{STYLE}{}\n</style>\n</head>\n<body>\n",
            escape(&plain(&self.title)),
            stylesheet()
        ));
        self.write_navigation(&mut page, &anchors);
        page.put(format_args!(
            "<main id=\"top\">\n<header>\n<h1>{}</h1>\n",
            rich(&self.title)
        ));
        if !self.lead.is_empty() {
            page.put(format_args!("<p class=\"lead\">{}</p>\n", rich(&self.lead)));
        }
        self.write_score(&mut page, &anchors);
        page.put(format_args!("</header>\n"));
        for (section, anchor) in self.sections.iter().zip(&anchors) {
            page.put(format_args!(
                "<section id=\"{anchor}\">\n<h2>{}</h2>\n",
                rich(&section.heading)
            ));
            page.blocks(&section.blocks);
            page.put(format_args!("</section>\n"));
        }
        self.write_provenance(&mut page);
        page.put(format_args!("</main>\n</body>\n</html>\n"));
        page.markup
    }

    /// A bar of links that stays in sight; pointless for a single section.
    fn write_navigation(&self, page: &mut Page<'_>, anchors: &[String]) {
        if self.sections.len() < 2 {
            return;
        }
        page.put(format_args!("<nav aria-label=\"Sections\"><ol>"));
        for (section, anchor) in self.sections.iter().zip(anchors) {
            page.put(format_args!(
                "<li><a href=\"#{anchor}\">{}</a></li>",
                rich(&section.heading)
            ));
        }
        if !self.provenance.facts().is_empty() {
            page.put(format_args!(
                "<li><a href=\"#{PROVENANCE}\">Provenance</a></li>"
            ));
        }
        page.put(format_args!("</ol></nav>\n"));
    }

    /// The verdicts of all claims at a glance, linked to the first section that lists some.
    fn write_score(&self, page: &mut Page<'_>, anchors: &[String]) {
        let tally = self.tally();
        if tally == Tally::default() {
            return;
        }
        let has_claims = |section: &Section| {
            section
                .blocks
                .iter()
                .any(|block| matches!(block, Block::Claims(_)))
        };
        let target = self
            .sections
            .iter()
            .position(has_claims)
            .map_or("top", |index| &anchors[index]);
        page.put(format_args!("<p class=\"score\"><a href=\"#{target}\">"));
        for verdict in Verdict::ALL
            .into_iter()
            .filter(|verdict| tally.count(*verdict) > 0)
        {
            page.put(format_args!(
                "<span class=\"badge {}\">{} {} {}</span>",
                verdict.class(),
                verdict.mark(),
                tally.count(verdict),
                verdict.words()
            ));
        }
        page.put(format_args!("</a></p>\n"));
    }

    fn write_provenance(&self, page: &mut Page<'_>) {
        let facts = self.provenance.facts();
        if facts.is_empty() {
            return;
        }
        page.put(format_args!(
            "<section id=\"{PROVENANCE}\" class=\"provenance\">\n<h2>Provenance</h2>\n<dl>\n"
        ));
        for fact in facts {
            let value = if fact.literal {
                code(&fact.value)
            } else {
                escape(&fact.value)
            };
            page.put(format_args!(
                "<dt>{}</dt><dd>{value}</dd>\n",
                escape(&fact.name)
            ));
        }
        page.put(format_args!("</dl>\n</section>\n"));
    }
}

/// The page so far, and the anchors and headings that can be linked to.
struct Page<'a> {
    markup: String,
    places: Vec<(&'a str, &'a str)>,
}

impl Page<'_> {
    /// Appends markup whose text is already escaped.
    fn put(&mut self, markup: fmt::Arguments<'_>) {
        self.markup
            .write_fmt(markup)
            .expect("writing to a string cannot fail");
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Paragraph(text) => self.put(format_args!("<p>{}</p>\n", rich(text))),
                Block::List(points) => self.list(points),
                Block::Table(table) => self.table(table),
                Block::Figures(plates) => self.figures(plates),
                Block::Claims(claims) => self.claims(claims),
                Block::Details { summary, blocks } => {
                    self.put(format_args!(
                        "<details>\n<summary>{}</summary>\n<div>\n",
                        rich(summary)
                    ));
                    self.blocks(blocks);
                    self.put(format_args!("</div>\n</details>\n"));
                }
            }
        }
    }

    fn list(&mut self, points: &[String]) {
        self.put(format_args!("<ul>\n"));
        for point in points {
            self.put(format_args!("<li>{}</li>\n", rich(point)));
        }
        self.put(format_args!("</ul>\n"));
    }

    /// The frame around the table scrolls, so that a wide table does not widen the page.
    fn table(&mut self, table: &Table) {
        self.put(format_args!("<figure class=\"table\">\n"));
        if !table.caption.is_empty() {
            self.put(format_args!(
                "<figcaption>{}</figcaption>\n",
                rich(&table.caption)
            ));
        }
        self.put(format_args!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">\n<table>\n<thead><tr>",
            escape(&plain(&table.caption))
        ));
        for column in &table.columns {
            self.put(format_args!(
                "<th scope=\"col\"{}>{}",
                alignment(column),
                rich(&column.name)
            ));
            if !column.unit.is_empty() {
                self.put(format_args!(
                    " <span class=\"unit\">{}</span>",
                    rich(&column.unit)
                ));
            }
            self.put(format_args!("</th>"));
        }
        self.put(format_args!("</tr></thead>\n<tbody>\n"));
        for row in &table.rows {
            let class = if row.begins_group {
                " class=\"group\""
            } else {
                ""
            };
            self.put(format_args!("<tr{class}>"));
            for (index, (column, cell)) in table.cells(row).enumerate() {
                let (name, scope) = if index == 0 {
                    ("th", " scope=\"row\"")
                } else {
                    ("td", "")
                };
                self.put(format_args!("<{name}{scope}{}>", alignment(column)));
                if let Some(cell) = cell {
                    let text = rich(&cell.text);
                    match cell.tone {
                        Tone::Normal => self.put(format_args!("{text}")),
                        Tone::Best => self.put(format_args!("<strong>{text}</strong>")),
                        Tone::Quoted => self.put(format_args!("<i>{text}</i>")),
                    }
                    if !cell.detail.is_empty() {
                        self.put(format_args!(" <small>{}</small>", rich(&cell.detail)));
                    }
                }
                self.put(format_args!("</{name}>"));
            }
            self.put(format_args!("</tr>\n"));
        }
        self.put(format_args!("</tbody>\n</table>\n</div>\n"));
        for note in &table.notes {
            self.put(format_args!("<p class=\"note\">{}</p>\n", rich(note)));
        }
        self.put(format_args!("</figure>\n"));
    }

    fn figures(&mut self, plates: &[Plate]) {
        let narrowest = plates
            .iter()
            .map(|plate| plate.drawing.size().width)
            .fold(f64::INFINITY, f64::min);
        let least = if narrowest.is_finite() {
            (narrowest * 0.8).min(420.0)
        } else {
            300.0
        };
        self.put(format_args!(
            "<div class=\"plates\" style=\"--least:{least:.0}px\">\n"
        ));
        for plate in plates {
            self.put(format_args!("<figure>\n"));
            match &plate.narrow {
                Some(narrow) => {
                    self.drawing("wide", &plate.drawing);
                    self.drawing("narrow", narrow);
                }
                None => self.drawing("only", &plate.drawing),
            }
            if !plate.caption.is_empty() {
                self.put(format_args!(
                    "<figcaption>{}</figcaption>\n",
                    rich(&plate.caption)
                ));
            }
            self.put(format_args!("</figure>\n"));
        }
        self.put(format_args!("</div>\n"));
    }

    fn drawing(&mut self, class: &str, drawing: &Svg) {
        let most = drawing.size().width * 1.25;
        self.put(format_args!(
            "<div class=\"{class}\" style=\"max-width:{most:.0}px\">{}</div>\n",
            drawing.inline()
        ));
    }

    fn claims(&mut self, claims: &[Claim]) {
        self.put(format_args!("<ul class=\"claims\">\n"));
        for claim in claims {
            let verdict = claim.verdict();
            self.put(format_args!(
                "<li><span class=\"badge {}\">{} {}</span><div><p>{}</p>",
                verdict.class(),
                verdict.mark(),
                verdict.words(),
                rich(&claim.text)
            ));
            let target = claim.section.as_deref().map(slug);
            let place = self
                .places
                .iter()
                .find(|(anchor, _)| target.as_deref() == Some(anchor))
                .copied();
            if !claim.evidence.is_empty() || place.is_some() {
                self.put(format_args!(
                    "<p class=\"evidence\">{}",
                    rich(&claim.evidence)
                ));
                if let Some((anchor, heading)) = place {
                    self.put(format_args!(
                        " <a href=\"#{anchor}\">See {}</a>",
                        rich(heading)
                    ));
                }
                self.put(format_args!("</p>"));
            }
            self.put(format_args!("</div></li>\n"));
        }
        self.put(format_args!("</ul>\n"));
    }
}

fn alignment(column: &Column) -> &'static str {
    match column.align {
        Align::Left => "",
        Align::Right => " class=\"right\"",
    }
}

/// Escaped code. A word with a hyphen, such as an option, is not broken at it, unless it is as long as a line.
fn code(text: &str) -> String {
    let words: Vec<String> = text
        .split(' ')
        .map(|word| match escape(word) {
            word if word.contains('-') && word.len() <= 28 => {
                format!("<span class=\"word\">{word}</span>")
            }
            word => word,
        })
        .collect();
    format!("<code>{}</code>", words.join(" "))
}

/// Escaped text with its code marked.
fn rich(text: &str) -> String {
    spans(text)
        .into_iter()
        .map(|span| match span {
            Span::Plain(text) => escape(text),
            Span::Code(text) => code(text),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::well_formed::assert_well_formed;
    use crate::{Provenance, sample};

    #[test]
    fn the_page_is_well_formed() {
        assert_well_formed(&sample::report().to_html());
        assert_well_formed(&Report::default().to_html());
    }

    #[test]
    fn text_never_becomes_markup() {
        let page = sample::report().to_html();
        assert!(!page.contains("<b>"));
        assert!(page.contains("&lt;b&gt;a|b&lt;/b&gt; &amp; &quot;c&quot;"));
        assert!(page.contains("<code>i|j</code>"));
    }

    #[test]
    fn the_page_asks_for_nothing_from_elsewhere() {
        let page = sample::report().to_html();
        for call in ["http://", "https://", "src=", "@import", "url(", "<script"] {
            assert!(!page.contains(call), "the page contains {call}");
        }
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
        for words in ["✓ met", "✗ not met", "○ not run", "✓ 1 met"] {
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
    fn wide_drawings_come_with_a_narrow_one() {
        let page = sample::report().to_html();
        assert_eq!(
            page.matches("class=\"wide\"").count(),
            page.matches("class=\"narrow\"").count()
        );
        assert_eq!(page.matches("class=\"narrow\"").count(), 1);
    }
}
