//! The report as GitHub-flavoured Markdown.

use crate::claim::Claim;
use crate::document::{Block, Report};
use crate::inline::{Span, spans};
use crate::plate::Plate;
use crate::table::{Align, Cell, Table, Tone};

impl Report {
    /// The whole report as Markdown. Drawings are shown from their files; those without one are named only.
    pub fn to_markdown(&self) -> String {
        let mut parts = vec![format!("# {}", text(&self.title)), text(&self.lead)];
        if !self.findings.is_empty() {
            parts.push("## Findings".to_owned());
            parts.extend(block(&Block::List(self.findings.clone())));
        }
        for section in &self.sections {
            parts.push(format!("## {}", text(&section.heading)));
            parts.extend(blocks(&section.blocks));
        }
        let facts = self.provenance.facts();
        if !facts.is_empty() {
            parts.push("## Provenance".to_owned());
            let line = |fact: crate::provenance::Fact| {
                let value = if fact.literal {
                    code(&fact.value)
                } else {
                    text(&fact.value)
                };
                format!("- {}: {value}", text(&fact.name))
            };
            parts.push(facts.into_iter().map(line).collect::<Vec<_>>().join("\n"));
        }
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n") + "\n"
    }
}

impl Table {
    /// The table alone as Markdown, with its caption above and its notes below.
    fn to_markdown(&self) -> String {
        let mut parts = Vec::new();
        if !self.caption.is_empty() {
            parts.push(format!("**{}**", text(&self.caption)));
        }
        if !self.columns.is_empty() {
            let headings = line(self.columns.iter().map(|column| in_cell(&column.heading())));
            let rule = line(self.columns.iter().map(|column| {
                match column.align {
                    Align::Left => ":---",
                    Align::Right => "---:",
                }
                .to_owned()
            }));
            let rows = self.rows.iter().map(|row| {
                line(
                    self.cells(row)
                        .map(|(_, one)| one.map_or_else(String::new, cell)),
                )
            });
            parts.push(
                [headings, rule]
                    .into_iter()
                    .chain(rows)
                    .collect::<Vec<_>>()
                    .join("\n"),
            );
        }
        parts.extend(self.notes.iter().map(|note| text(note)));
        parts.join("\n\n")
    }
}

fn blocks(blocks: &[Block]) -> Vec<String> {
    blocks
        .iter()
        .flat_map(block)
        .filter(|part| !part.is_empty())
        .collect()
}

fn block(block: &Block) -> Vec<String> {
    match block {
        Block::Heading(heading) => vec![format!("### {}", text(heading))],
        Block::Paragraph(paragraph) => vec![text(paragraph)],
        Block::List(points) => vec![
            points
                .iter()
                .map(|point| format!("- {}", text(point)))
                .collect::<Vec<_>>()
                .join("\n"),
        ],
        Block::Table(table) => vec![table.to_markdown()],
        Block::Figures(plates) => plates.iter().map(plate).collect(),
        Block::Claims(given) => vec![claims(given)],
        Block::Details {
            summary,
            blocks: inner,
        } => {
            let mut parts = vec![format!("<details>\n<summary>{}</summary>", text(summary))];
            parts.extend(blocks(inner));
            parts.push("</details>".to_owned());
            parts
        }
    }
}

fn claims(claims: &[Claim]) -> String {
    let row = |claim: &Claim| {
        let verdict = claim.verdict;
        line([
            format!("{} {}", verdict.mark(), verdict.words()),
            in_cell(&claim.text),
            in_cell(&claim.evidence),
        ])
    };
    let head = [
        "| Verdict | Claim | Evidence |".to_owned(),
        "| :--- | :--- | :--- |".to_owned(),
    ];
    head.into_iter()
        .chain(claims.iter().map(row))
        .collect::<Vec<_>>()
        .join("\n")
}

fn plate(plate: &Plate) -> String {
    let title = text(plate.drawing.title());
    let shown = match &plate.file {
        Some(path) => format!("![{title}]({})", address(path)),
        None if title.is_empty() => String::new(),
        None => format!("*Figure: {title}*"),
    };
    [shown, text(&plate.caption)]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// A relative address: what would end it is written by its number.
fn address(path: &str) -> String {
    let mut address = String::new();
    for character in path.chars() {
        match character {
            ' ' => address.push_str("%20"),
            '(' => address.push_str("%28"),
            ')' => address.push_str("%29"),
            '<' => address.push_str("%3C"),
            '>' => address.push_str("%3E"),
            '\\' => address.push('/'),
            _ => address.push(character),
        }
    }
    address
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let mut line = String::from("|");
    for cell in cells {
        line.push(' ');
        line.push_str(&cell);
        line.push_str(" |");
    }
    line
}

fn cell(cell: &Cell) -> String {
    let text = in_cell(&cell.text);
    let text = match cell.tone {
        _ if text.is_empty() => text,
        Tone::Normal => text,
        Tone::Best => format!("**{text}**"),
        Tone::Quoted => format!("*{text}*"),
    };
    if cell.detail.is_empty() {
        text
    } else {
        format!("{text} ({})", in_cell(&cell.detail))
    }
}

/// Text for a cell: bars are escaped even inside code, which is the one place where Markdown needs that.
fn in_cell(given: &str) -> String {
    spans(given)
        .into_iter()
        .map(|span| match span {
            Span::Plain(plain) => escaped(plain),
            Span::Code(literal) => code(literal).replace('|', "\\|"),
        })
        .collect()
}

fn text(given: &str) -> String {
    spans(given)
        .into_iter()
        .map(|span| match span {
            Span::Plain(plain) => escaped(plain),
            Span::Code(literal) => code(literal),
        })
        .collect()
}

/// Escapes what Markdown or the HTML inside it would take for itself. Line breaks become spaces, so no text begins a
/// block by accident except at its very start, where its first character is escaped.
fn escaped(plain: &str) -> String {
    let mut escaped = String::with_capacity(plain.len());
    for (index, character) in plain.char_indices() {
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '#' | '+' | '-' if index == 0 && plain[1..].starts_with([' ', '#']) => {
                escaped.push('\\');
                escaped.push(character);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Code within a line, between more backticks than it holds in a row.
fn code(literal: &str) -> String {
    let fence = "`".repeat(longest_run(literal) + 1);
    let literal = literal.replace(['\n', '\r'], " ");
    if literal.contains('`') {
        format!("{fence} {literal} {fence}")
    } else {
        format!("{fence}{literal}{fence}")
    }
}

fn longest_run(literal: &str) -> usize {
    literal
        .split(|character| character != '`')
        .map(str::len)
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, EVIL};
    use crate::{Column, Row};

    /// Bars that end a cell: those without a backslash before them.
    fn bars(line: &str) -> usize {
        line.replace("\\\\", "")
            .replace("\\|", "")
            .matches('|')
            .count()
    }

    #[test]
    fn bars_in_cells_do_not_make_columns() {
        let table = Table {
            columns: vec![Column::text(EVIL), Column::number("b|c")],
            rows: vec![
                Row::from([EVIL.into(), "a\\|b".into()]),
                Row::from(["one cell".into()]),
            ],
            ..Table::default()
        };
        let markdown = table.to_markdown();
        assert_eq!(markdown.lines().count(), 4);
        for line in markdown.lines() {
            assert_eq!(bars(line), 3, "{line}");
        }
    }

    #[test]
    fn alignment_and_tone_are_kept() {
        let table = Table {
            columns: vec![Column::text("Model"), Column::number("Test").unit("%")],
            rows: vec![
                Row::from(["plain".into(), Cell::quoted("92.1")]),
                Row::from(["adaptive".into(), sample::best("93.9").detail("93.7–94.0")]),
            ],
            ..Table::default()
        };
        assert_eq!(
            table.to_markdown(),
            "| Model | Test (%) |\n| :--- | ---: |\n| plain | *92.1* |\n| adaptive | **93.9** (93.7–94.0) |"
        );
    }

    #[test]
    fn markup_in_text_is_text() {
        let markdown = sample::report().to_markdown();
        assert!(!markdown.contains("<b>"));
        assert!(markdown.contains("\\*e\\* \\_f\\_ \\[g\\](h)"));
        assert_eq!(escaped("# not a heading"), "\\# not a heading");
        assert_eq!(escaped("-1 is not a list"), "-1 is not a list");
    }

    #[test]
    fn code_keeps_its_backticks() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a`b"), "`` a`b ``");
    }

    #[test]
    fn drawings_are_shown_from_their_files() {
        assert!(
            sample::report()
                .to_markdown()
                .contains("](figures/a%20b.svg)")
        );
    }
}
