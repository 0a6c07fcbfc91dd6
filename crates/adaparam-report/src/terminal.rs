//! The tables and claims of a report as plain text, for the end of a run.

use crate::claim::{Claim, Tally};
use crate::document::{Block, Report};
use crate::inline::plain;
use crate::table::{Align, Cell, Table, Tone};

const LEAST_WIDTH: usize = 24;
const GAP: usize = 2;

impl Report {
    /// Tables and claims, at most `width` characters wide where words allow it.
    pub fn to_terminal(&self, width: usize) -> String {
        let width = width.max(LEAST_WIDTH);
        let mut parts = vec![wrapped(&plain(&self.title), width).join("\n")];
        for section in &self.sections {
            let mut shown = Vec::new();
            collect(&section.blocks, width, &mut shown);
            if !shown.is_empty() {
                let mut heading = wrapped(&plain(&section.heading), width);
                let longest = heading.iter().map(|line| length(line)).max().unwrap_or(0);
                heading.push("─".repeat(longest));
                parts.push(heading.join("\n"));
                parts.append(&mut shown);
            }
        }
        if self.tally() != Tally::default() {
            let sentence = format!("Claims: {}.", self.tally().sentence());
            parts.push(wrapped(&sentence, width).join("\n"));
        }
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n") + "\n"
    }
}

fn collect(blocks: &[Block], width: usize, parts: &mut Vec<String>) {
    for block in blocks {
        match block {
            Block::Table(table) => parts.push(table.to_terminal(width)),
            Block::Claims(claims) => parts.push(claims_text(claims, width)),
            Block::Paragraph(_) | Block::List(_) | Block::Figures(_) | Block::Details { .. } => {}
        }
    }
    parts.retain(|part| !part.is_empty());
}

impl Table {
    /// The table alone as aligned text, at most `width` characters wide: cells of words are broken over lines, and where
    /// that is not enough each row becomes a list.
    pub fn to_terminal(&self, width: usize) -> String {
        let width = width.max(LEAST_WIDTH);
        let mut lines = wrapped(&plain(&self.caption), width);
        if !self.columns.is_empty() {
            match self.fit(width) {
                Some(widths) => lines.extend(self.grid(&widths)),
                None => lines.extend(self.records(width)),
            }
        }
        lines.extend(
            self.notes
                .iter()
                .flat_map(|note| wrapped(&plain(note), width)),
        );
        lines.join("\n")
    }

    /// The heading and the cells of a column.
    fn texts(&self, index: usize) -> impl Iterator<Item = String> {
        let cells = self
            .rows
            .iter()
            .filter_map(move |row| row.cells.get(index))
            .map(cell_text);
        cells.chain([plain(&self.columns[index].heading())])
    }

    fn natural_width(&self, index: usize) -> usize {
        self.texts(index)
            .map(|text| length(&text))
            .max()
            .unwrap_or(0)
    }

    /// Widths of the columns, the widest narrowed first until all fit, but none below its longest word; nothing if
    /// that is not enough.
    fn fit(&self, width: usize) -> Option<Vec<usize>> {
        let longest_word = |index: usize| {
            self.texts(index)
                .map(|text| text.split(' ').map(length).max().unwrap_or(0))
                .max()
                .unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|index| self.natural_width(index))
            .collect();
        let least: Vec<usize> = (0..self.columns.len()).map(longest_word).collect();
        let gaps = GAP * (widths.len() - 1);
        while widths.iter().sum::<usize>() + gaps > width {
            let can_shrink = |index: &usize| widths[*index] > least[*index];
            let widest = (0..widths.len())
                .filter(can_shrink)
                .max_by_key(|index| widths[*index])?;
            widths[widest] -= 1;
        }
        Some(widths)
    }

    fn grid(&self, widths: &[usize]) -> Vec<String> {
        let total = widths.iter().sum::<usize>() + GAP * (widths.len() - 1);
        let headings: Vec<Vec<String>> = self
            .columns
            .iter()
            .zip(widths)
            .map(|(column, width)| wrapped(&plain(&column.heading()), *width))
            .collect();
        let mut lines = vec!["━".repeat(total)];
        lines.extend(self.grid_row(&headings, widths));
        lines.push("─".repeat(total));
        for (index, row) in self.rows.iter().enumerate() {
            if row.begins_group && index > 0 {
                lines.push("╌".repeat(total));
            }
            let cells = self.cells(row).zip(widths).enumerate();
            let broken: Vec<Vec<String>> = cells
                .map(|(index, ((_, cell), width))| {
                    let apart = *width < self.natural_width(index);
                    cell.map_or_else(Vec::new, |cell| cell_lines(cell, *width, apart))
                })
                .collect();
            lines.extend(self.grid_row(&broken, widths));
        }
        lines.push("━".repeat(total));
        lines
    }

    /// One row of cells, each already broken into lines.
    fn grid_row(&self, broken: &[Vec<String>], widths: &[usize]) -> Vec<String> {
        let height = broken.iter().map(Vec::len).max().unwrap_or(0).max(1);
        (0..height)
            .map(|line| {
                let pieces: Vec<String> = broken
                    .iter()
                    .zip(widths)
                    .zip(&self.columns)
                    .map(|((cell, width), column)| {
                        pad(
                            cell.get(line).map_or("", String::as_str),
                            *width,
                            column.align,
                        )
                    })
                    .collect();
                pieces.join(&" ".repeat(GAP)).trim_end().to_owned()
            })
            .collect()
    }

    /// Each row as a list of its cells, the names of the columns in front.
    fn records(&self, width: usize) -> Vec<String> {
        let names: Vec<String> = self
            .columns
            .iter()
            .map(|column| plain(&column.heading()))
            .collect();
        let margin = names
            .iter()
            .map(|name| length(name))
            .max()
            .unwrap_or(0)
            .min(width / 2)
            + GAP;
        let room = width.saturating_sub(margin).max(1);
        let mut lines = Vec::new();
        for row in &self.rows {
            lines.push("─".repeat(width));
            for (name, (_, cell)) in names.iter().zip(self.cells(row)) {
                let left = wrapped(name, margin - GAP);
                let right = wrapped(&cell.map_or_else(String::new, cell_text), room);
                for index in 0..left.len().max(right.len()) {
                    let left = left.get(index).map_or("", String::as_str);
                    let right = right.get(index).map_or("", String::as_str);
                    lines.push(
                        format!("{}{right}", pad(left, margin, Align::Left))
                            .trim_end()
                            .to_owned(),
                    );
                }
            }
        }
        lines
    }
}

fn claims_text(claims: &[Claim], width: usize) -> String {
    const INDENT: usize = 11;
    let mut lines = Vec::new();
    for claim in claims {
        let verdict = claim.verdict();
        let badge = pad(
            &format!("{} {}", verdict.mark(), verdict.words()),
            INDENT,
            Align::Left,
        );
        let room = width.saturating_sub(INDENT).max(1);
        let body = wrapped(&plain(&claim.text), room)
            .into_iter()
            .chain(wrapped(&plain(&claim.evidence), room));
        for (index, line) in body.enumerate() {
            let margin = if index == 0 {
                badge.clone()
            } else {
                " ".repeat(INDENT)
            };
            lines.push(format!("{margin}{line}"));
        }
    }
    lines.join("\n")
}

fn cell_text(cell: &Cell) -> String {
    let (text, detail) = cell_parts(cell);
    format!("{text} {detail}").trim_end().to_owned()
}

/// A cell broken into lines. In a column that is narrower than it would like, every detail has lines of its own.
fn cell_lines(cell: &Cell, width: usize, apart: bool) -> Vec<String> {
    if !apart {
        return wrapped(&cell_text(cell), width);
    }
    let (text, detail) = cell_parts(cell);
    wrapped(&text, width)
        .into_iter()
        .chain(wrapped(&detail, width))
        .collect()
}

/// The text, marked if it is the best, and the detail in brackets.
fn cell_parts(cell: &Cell) -> (String, String) {
    // A control character could move the cursor or change colours.
    let safe = |text: &str| plain(text).replace(char::is_control, " ");
    let mark = if cell.tone == Tone::Best { "*" } else { "" };
    let detail = if cell.detail.is_empty() {
        String::new()
    } else {
        format!("({})", safe(&cell.detail))
    };
    (format!("{mark}{}", safe(&cell.text)), detail)
}

/// Number of columns a text takes: marks that combine with the letter before them take none.
fn length(text: &str) -> usize {
    text.chars()
        .filter(|character| !('\u{300}'..='\u{36f}').contains(character))
        .count()
}

fn pad(text: &str, width: usize, align: Align) -> String {
    let free = width.saturating_sub(length(text));
    let before = match align {
        Align::Left => 0,
        Align::Right => free,
    };
    format!("{}{text}{}", " ".repeat(before), " ".repeat(free - before))
}

/// Breaks a text at spaces, and a word that is too long where it must be.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text
        .split(|character: char| character.is_whitespace() || character.is_control())
        .filter(|word| !word.is_empty())
    {
        let letters: Vec<char> = word.chars().collect();
        for piece in letters.chunks(width.max(1)) {
            let piece: String = piece.iter().collect();
            match lines.last_mut() {
                Some(line) if length(line) + 1 + length(&piece) <= width => {
                    line.push(' ');
                    line.push_str(&piece);
                }
                _ => lines.push(piece),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Row, Section, sample};

    fn table() -> Table {
        Table {
            caption: "Accuracy on the test set".into(),
            columns: vec![
                Column::text("Model"),
                Column::number("Parameters"),
                Column::number("Test").unit("%"),
            ],
            rows: vec![
                Row::from([
                    "Logistic regression".into(),
                    "7,850".into(),
                    Cell::quoted("92.14"),
                ]),
                Row::from([
                    "SVA with a long name of its own".into(),
                    "99,710".into(),
                    sample::best("97.1"),
                ])
                .begins_group(),
            ],
            notes: vec!["* is the best.".into()],
        }
    }

    #[test]
    fn columns_line_up() {
        assert_eq!(
            table().to_terminal(80),
            "Accuracy on the test set\n\
             ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n\
             Model                            Parameters  Test (%)\n\
             ─────────────────────────────────────────────────────\n\
             Logistic regression                   7,850     92.14\n\
             ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌\n\
             SVA with a long name of its own      99,710     *97.1\n\
             ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n\
             * is the best."
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 24..120 {
            for text in [
                table().to_terminal(width),
                sample::report().to_terminal(width),
            ] {
                for line in text.lines() {
                    assert!(length(line) <= width, "{} > {width}: {line}", length(line));
                }
            }
        }
    }

    #[test]
    fn a_narrow_terminal_breaks_cells_between_words() {
        let text = table().to_terminal(40);
        assert!(
            text.contains("Logistic                 7,850     92.14\nregression\n"),
            "{text}"
        );
    }

    #[test]
    fn a_very_narrow_terminal_gets_lists() {
        let text = table().to_terminal(24);
        assert!(text.contains("Parameters  7,850"), "{text}");
    }

    #[test]
    fn claims_show_their_verdict_and_the_tally() {
        let text = sample::report().to_terminal(80);
        assert!(text.contains("✓ met      adaptive beats plain"), "{text}");
        assert!(
            text.ends_with("Claims: 1 met, 1 not met, 1 not run.\n"),
            "{text}"
        );
    }

    #[test]
    fn what_is_folded_away_stays_so() {
        let folded = Block::Details {
            summary: "all runs".into(),
            blocks: vec![Block::Table(table())],
        };
        let report = Report {
            title: "a report".into(),
            sections: vec![Section::new("a section").with(folded)],
            ..Report::default()
        };
        assert_eq!(report.to_terminal(80), "a report\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let mut table = table();
        table.rows[0].cells[0] = "a\u{1b}[31mb".into();
        table.caption = "c\u{7}d".into();
        let text = table.to_terminal(80);
        assert!(
            text.chars()
                .all(|character| character == '\n' || !character.is_control())
        );
    }
}
