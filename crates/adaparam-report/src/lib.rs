//! Results, described once and written three ways: a self-contained page, Markdown to paste, and text for a terminal.
//!
//! A [`Report`] holds plain text, tables, claims and drawings; each writer escapes for its own format, so a caller never
//! writes markup. Text between backticks is shown as code.

pub mod figure;
pub mod number;

mod claim;
mod document;
mod html;
mod inline;
mod markdown;
mod plate;
mod provenance;
mod table;
mod terminal;
mod visible;
#[cfg(test)]
mod well_formed;

pub use claim::{Claim, Tally, Verdict};
pub use document::{Block, Report, Section};
pub use plate::Plate;
pub use provenance::Provenance;
pub use table::{Cell, Column, Row, Table, Tone};
pub use visible::visible;

#[cfg(test)]
pub(crate) mod sample {
    //! A report with one of everything, full of characters that mean something to some format.

    use super::*;
    use crate::figure::{Axis, Colour, Line, Lines};

    pub(crate) const EVIL: &str = "<b>a|b</b> & \"c\" 'd' *e* _f_ [g](h) \\ `i|j`";

    /// A cell that is the best of its kind.
    pub(crate) fn best(text: &str) -> Cell {
        Cell {
            tone: Tone::Best,
            ..Cell::from(text)
        }
    }

    pub(crate) fn report() -> Report {
        let table = Table {
            caption: EVIL.into(),
            columns: vec![
                Column::text("Model"),
                Column::number("Test").unit("%"),
                Column::text("Kind"),
            ],
            rows: vec![
                Row::from([
                    "LSTM".into(),
                    Cell::from("92.1").detail("91.9–92.3"),
                    EVIL.into(),
                ]),
                Row::from(["short".into()]).begins_group(),
                Row::from([EVIL.into(), best("98.4"), Cell::quoted("97.1")]),
            ],
            notes: vec![EVIL.into()],
        };
        let lines = Lines {
            title: EVIL.into(),
            x: Axis::linear(EVIL),
            series: vec![Line::new(EVIL, Colour::Blue, vec![(0.0, 1.0), (1.0, 0.5)])],
            ..Lines::default()
        };
        Report {
            title: EVIL.into(),
            lead: EVIL.into(),
            findings: vec![EVIL.into(), "a second finding".into()],
            sections: vec![
                Section::new(EVIL)
                    .with(Block::Paragraph(EVIL.into()))
                    .with(Block::List(vec![EVIL.into(), "two".into()]))
                    .with(Block::Table(table))
                    .with(Block::Figures(vec![
                        Plate::new(&lines, EVIL).in_file("figures/a b.svg"),
                    ])),
                Section::new("Claims")
                    .with(Block::Heading(EVIL.into()))
                    .with(Block::Claims(vec![
                        Claim::new("adaptive beats plain", Verdict::Met, EVIL).seen_in("claims"),
                        Claim::new(EVIL, Verdict::NotMet, ""),
                        Claim::new("at full size", Verdict::NotJudged, "about larger models"),
                        Claim::new("one seed", Verdict::NotDecided, ""),
                        Claim::new("more than said", Verdict::Exceeded, ""),
                        Claim::new("elsewhere", Verdict::NotRun, ""),
                    ])),
                Section::new("Claims").with(Block::Details {
                    summary: EVIL.into(),
                    blocks: vec![Block::Table(Table::default())],
                }),
            ],
            provenance: Provenance {
                command: "adaparam reproduce tail --out 'a&b'".into(),
                commit: "0123abc".into(),
                seeds: vec![1, 2, 3],
                machine: EVIL.into(),
                data: vec![("train".into(), "ab".repeat(32))],
                ..Provenance::default()
            },
        }
    }
}
