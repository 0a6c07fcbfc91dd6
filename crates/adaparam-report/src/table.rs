//! Tables of results.

/// How the cells of a column stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    #[default]
    Left,
    /// Numbers.
    Right,
}

/// A column's heading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// What it holds.
    pub(crate) name: String,
    /// Unit of its numbers; may be empty.
    pub(crate) unit: String,
    /// How its cells stand.
    pub(crate) align: Align,
}

impl Column {
    /// A column of words.
    pub fn text(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            align: Align::Right,
            ..Self::default()
        }
    }

    /// The same column with the unit of its numbers.
    #[must_use]
    pub fn unit(self, unit: impl Into<String>) -> Self {
        Self {
            unit: unit.into(),
            ..self
        }
    }

    /// Name and unit on one line.
    pub(crate) fn heading(&self) -> String {
        if self.unit.is_empty() {
            self.name.clone()
        } else {
            format!("{} ({})", self.name, self.unit)
        }
    }
}

/// How much a cell asks to be looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As the others.
    #[default]
    Normal,
    /// The best of its kind.
    Best,
    /// Not ours: quoted from the paper or from others.
    Quoted,
}

/// One cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// Something smaller beside it, such as the spread over seeds; may be empty.
    pub detail: String,
    /// How much it asks to be looked at.
    pub tone: Tone,
}

impl Cell {
    /// A number that is not ours.
    pub fn quoted(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            tone: Tone::Quoted,
            ..Self::default()
        }
    }

    /// The same cell with something smaller beside it.
    #[must_use]
    pub fn detail(self, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            ..self
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Its cells. Missing ones are empty, those beyond the last column are not shown.
    pub(crate) cells: Vec<Cell>,
    /// Whether a rule sets it off from the row above.
    pub(crate) begins_group: bool,
}

impl Row {
    /// A row of cells.
    pub fn new(cells: Vec<Cell>) -> Self {
        Self {
            cells,
            begins_group: false,
        }
    }

    /// The same row, set off from the one above.
    #[must_use]
    pub fn begins_group(self) -> Self {
        Self {
            begins_group: true,
            ..self
        }
    }
}

impl<const N: usize> From<[Cell; N]> for Row {
    fn from(cells: [Cell; N]) -> Self {
        Self::new(cells.into())
    }
}

/// A table. The first column names the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Remarks below it.
    pub notes: Vec<String>,
}

impl Table {
    /// The cells of a row, exactly one a column.
    pub(crate) fn cells<'a>(
        &'a self,
        row: &'a Row,
    ) -> impl Iterator<Item = (&'a Column, Option<&'a Cell>)> {
        self.columns
            .iter()
            .enumerate()
            .map(|(index, column)| (column, row.cells.get(index)))
    }

    /// Whether a cell is marked as the best.
    pub fn has_best(&self) -> bool {
        let mut cells = self.rows.iter().flat_map(|row| &row.cells);
        cells.any(|cell| cell.tone == Tone::Best)
    }

    /// The table without the column of this name.
    #[must_use]
    pub fn without(&self, column: &str) -> Self {
        let mut table = self.clone();
        while let Some(index) = table.columns.iter().position(|it| it.name == column) {
            table.columns.remove(index);
            for row in &mut table.rows {
                if index < row.cells.len() {
                    row.cells.remove(index);
                }
            }
        }
        table
    }

    /// The table turned: its columns but the first become rows below `heading`, and those of its rows that begin with one of
    /// these names become columns of numbers.
    #[must_use]
    pub fn turned(&self, heading: &str, names: &[&str]) -> Self {
        let name = |row: &Row| row.cells.first().map_or("", |cell| &cell.text).to_owned();
        let is_named = |row: &&Row| names.contains(&name(row).as_str());
        let turned: Vec<&Row> = self.rows.iter().filter(is_named).collect();
        let headings = turned.iter().map(|row| Column::number(name(row)));
        let below = self.columns.iter().enumerate().skip(1);
        let rows = below.map(|(index, column)| {
            let cells = turned.iter().map(|row| row.cells.get(index).cloned());
            let cells = cells.map(Option::unwrap_or_default);
            let first = Cell::from(column.heading());
            Row::new(std::iter::once(first).chain(cells).collect())
        });
        Self {
            caption: self.caption.clone(),
            columns: std::iter::once(Column::text(heading))
                .chain(headings)
                .collect(),
            rows: rows.collect(),
            notes: self.notes.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_one_cell_a_column() {
        let table = Table {
            columns: vec![Column::text("a"), Column::number("b")],
            ..Table::default()
        };
        for given in 0..4 {
            let row = Row::new(vec![Cell::from("x"); given]);
            assert_eq!(table.cells(&row).count(), 2);
            assert_eq!(
                table.cells(&row).filter_map(|(_, cell)| cell).count(),
                given.min(2)
            );
        }
    }

    #[test]
    fn a_table_is_turned_and_loses_columns() {
        let table = Table {
            columns: vec![Column::text(""), Column::text("a"), Column::text("b")],
            rows: vec![
                Row::from(["Text".into(), "x".into(), "y".into()]),
                Row::from(["Loss".into(), "1".into(), crate::sample::best("0")]),
                Row::from(["Time".into(), "3".into()]),
            ],
            ..Table::default()
        };
        assert!(table.has_best() && !table.without("b").has_best());
        let turned = table.turned("Run", &["Time", "Loss"]);
        let texts = |row: &Row| {
            row.cells
                .iter()
                .map(|it| it.text.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(turned.columns[1], Column::number("Loss"));
        assert_eq!(texts(&turned.rows[0]), ["a", "1", "3"]);
        assert_eq!(texts(&turned.rows[1]), ["b", "0", ""]);
        let narrow = turned.without("Loss");
        assert_eq!(narrow.columns.len(), 2);
        assert_eq!(texts(&narrow.rows[0]), ["a", "3"]);
        assert_eq!(turned.without("nothing"), turned);
    }

    #[test]
    fn a_heading_names_its_unit() {
        assert_eq!(Column::number("Test").unit("%").heading(), "Test (%)");
        assert_eq!(Column::number("Test").heading(), "Test");
    }
}
