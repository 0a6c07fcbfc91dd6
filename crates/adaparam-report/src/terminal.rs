//! Tables as plain text, for the end of a run.

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentLineStyle, LineStyle, TableStyle, Width,
};
use unicode_width::UnicodeWidthStr as _;

use crate::inline::plain;
use crate::table::{Align, Cell, Table, Tone};
use crate::visible::visible;

const LEAST_WIDTH: usize = 24;
const GAP: usize = 2;
/// Stands for the rule between two rows until it is known whether one is wanted. No text holds it.
const BETWEEN_ROWS: char = '\0';

const BARE: TableStyle = TableStyle::new().content_lines(ContentLineStyle::none().junction(' '));
const RULED: TableStyle = BARE
    .top_border(rule('━'))
    .header_separator(rule('─'))
    .row_separator(rule(BETWEEN_ROWS))
    .bottom_border(rule('━'));

const fn rule(stroke: char) -> LineStyle {
    LineStyle::none().fill(stroke).junction(stroke)
}

impl Table {
    /// The table alone as aligned text, at most `width` characters wide: cells of words are broken over lines, and where
    /// that is not enough each row becomes a list.
    pub fn to_terminal(&self, width: usize) -> String {
        let width = width.max(LEAST_WIDTH);
        let mut lines = paragraph(&self.caption, width);
        if !self.columns.is_empty() {
            let natural = self.widest(str::width);
            match self.fit(&natural, width) {
                Some(widths) => lines.extend(self.grid(&natural, &widths)),
                None => lines.extend(self.records(width)),
            }
        }
        lines.extend(self.notes.iter().flat_map(|note| paragraph(note, width)));
        lines.join("\n")
    }

    /// Whether [`to_terminal`](Self::to_terminal) sets it as a table, not as lists.
    pub fn fits(&self, width: usize) -> bool {
        let natural = self.widest(str::width);
        !natural.is_empty() && self.fit(&natural, width.max(LEAST_WIDTH)).is_some()
    }

    /// The largest measure of a column's heading and cells, for each column.
    fn widest(&self, measure: impl Fn(&str) -> usize) -> Vec<usize> {
        let mut widest: Vec<usize> = self
            .columns
            .iter()
            .map(|column| measure(&one_line(&column.heading())))
            .collect();
        for row in &self.rows {
            for (most, cell) in widest.iter_mut().zip(&row.cells) {
                *most = (*most).max(measure(&cell_text(cell, " ")));
            }
        }
        widest
    }

    /// Widths of the columns, the widest narrowed first until all fit, but none below its longest word; nothing if
    /// that is not enough.
    fn fit(&self, natural: &[usize], width: usize) -> Option<Vec<usize>> {
        let least = self.widest(|text| text.split(' ').map(str::width).max().unwrap_or(0));
        let mut widths = natural.to_vec();
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

    /// The table between rules. In a column that is narrower than it would like, every detail has lines of its own.
    fn grid(&self, natural: &[usize], widths: &[usize]) -> Vec<String> {
        let mut grid = comfy_table::Table::new();
        grid.load_style(RULED);
        grid.set_header(
            self.columns
                .iter()
                .map(|column| one_line(&column.heading())),
        );
        for row in &self.rows {
            let narrowed = natural
                .iter()
                .zip(widths)
                .map(|(natural, width)| width < natural);
            grid.add_row(self.cells(row).zip(narrowed).map(|((_, cell), narrowed)| {
                let between = if narrowed { "\n" } else { " " };
                cell.map_or_else(String::new, |cell| cell_text(cell, between))
            }));
        }
        for (column, given) in grid.column_iter_mut().zip(&self.columns) {
            column.set_cell_alignment(match given.align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
        let mut below = self.rows.iter().skip(1);
        let mut lines = lines(grid, widths);
        lines.retain(|line| {
            !line.starts_with(BETWEEN_ROWS) || below.next().is_some_and(|row| row.begins_group)
        });
        for line in &mut lines {
            *line = line.replace(BETWEEN_ROWS, "╌");
        }
        lines
    }

    /// Each row as a list of its cells that say something, the names of the columns in front.
    fn records(&self, width: usize) -> Vec<String> {
        let names: Vec<String> = self
            .columns
            .iter()
            .map(|column| one_line(&column.heading()))
            .collect();
        let longest = names.iter().map(|name| name.width()).max().unwrap_or(0);
        let margin = longest.min(width / 2);
        let mut lines = Vec::new();
        for row in &self.rows {
            lines.push("─".repeat(width));
            let texts = self
                .cells(row)
                .map(|(_, cell)| cell.map_or_else(String::new, |cell| cell_text(cell, " ")));
            let pairs = names.iter().cloned().zip(texts);
            let pairs = pairs.filter(|(_, text)| !text.is_empty());
            lines.extend(side_by_side(pairs, margin, width));
        }
        lines
    }
}

/// The text, marked if it is the best, and the detail in brackets.
fn cell_text(cell: &Cell, between: &str) -> String {
    let mark = if cell.tone == Tone::Best { "*" } else { "" };
    let text = format!("{mark}{}", one_line(&cell.text));
    if cell.detail.is_empty() {
        text
    } else {
        format!("{text}{between}({})", one_line(&cell.detail))
    }
}

/// Text without marks, its words apart by single spaces. What could move the cursor or change colours is an escape.
fn one_line(text: &str) -> String {
    visible(&plain(text))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Text broken at spaces, and within a word that is too long.
fn paragraph(text: &str, width: usize) -> Vec<String> {
    let text = one_line(text);
    if text.is_empty() {
        return Vec::new();
    }
    let mut grid = comfy_table::Table::new();
    grid.load_style(BARE).add_row([text]);
    lines(grid, &[width])
}

/// Names in a margin, each with its text beside it.
fn side_by_side(
    pairs: impl Iterator<Item = (String, String)>,
    margin: usize,
    width: usize,
) -> Vec<String> {
    let mut grid = comfy_table::Table::new();
    grid.load_style(BARE)
        .add_rows(pairs.map(|(name, text)| [name, text]));
    lines(grid, &[margin, width - margin - GAP])
}

/// The lines of a grid whose columns have these widths.
fn lines(mut grid: comfy_table::Table, widths: &[usize]) -> Vec<String> {
    for (index, (column, width)) in grid.column_iter_mut().zip(widths).enumerate() {
        // The rest of a gap is the invisible stroke between two columns.
        let padding = if index + 1 < widths.len() { GAP - 1 } else { 0 };
        column.set_padding((0, padding as u16));
        let whole = u16::try_from(width + padding).unwrap_or(u16::MAX);
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(whole)));
    }
    grid.lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, EVIL};
    use crate::{Column, Row};

    /// A table full of characters that mean something to some format.
    fn evil() -> Table {
        Table {
            caption: EVIL.into(),
            columns: vec![Column::text(EVIL), Column::number("Test").unit("%")],
            rows: vec![Row::from([EVIL.into(), Cell::from("92.1").detail(EVIL)])],
            notes: vec![EVIL.into()],
        }
    }

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
    fn a_list_leaves_out_what_is_empty() {
        let mut table = table();
        assert!(table.fits(80) && !table.fits(28));
        table.rows[0].cells[1] = "".into();
        let lists = table.to_terminal(28);
        assert_eq!(lists.matches("Parameters").count(), 1, "{lists}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 24..120 {
            for text in [table().to_terminal(width), evil().to_terminal(width)] {
                for line in text.lines() {
                    assert!(line.width() <= width, "{} > {width}: {line}", line.width());
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
    fn control_characters_do_not_reach_the_terminal() {
        let mut table = table();
        table.rows[0].cells[0] = "a\u{1b}[31mb".into();
        table.caption = "c\u{7}d".into();
        let text = table.to_terminal(80);
        assert!(
            text.chars()
                .all(|character| character == '\n' || !character.is_control())
        );
        assert!(
            text.contains("a\\u001b[31mb") && text.contains("c\\u0007d"),
            "{text}"
        );
    }
    #[test]
    fn columns_of_wide_and_combined_letters_line_up() {
        let table = Table {
            columns: vec![Column::text("Word"), Column::number("Count")],
            rows: vec![
                Row::from(["漢字".into(), "1".into()]),
                Row::from(["re\u{301}sume\u{301}".into(), "2".into()]),
            ],
            ..Table::default()
        };
        let text = table.to_terminal(80);
        for line in text.lines() {
            assert_eq!(line.width(), 13, "{text}");
        }
    }

    #[test]
    fn words_stay_whole_while_columns_fit() {
        for width in 36..80 {
            let text = table().to_terminal(width);
            for word in ["Logistic", "regression", "Parameters", "99,710", "*97.1"] {
                assert!(text.contains(word), "{word} at {width}: {text}");
            }
        }
    }

    #[test]
    fn rules_stand_only_before_groups() {
        let mut table = table();
        table.rows.push(table.rows[0].clone());
        table.rows[0].begins_group = true;
        let text = table.to_terminal(80);
        assert_eq!(text.lines().filter(|line| line.starts_with('╌')).count(), 1);
        assert_eq!(text.lines().count(), 10, "{text}");
    }
}
