//! Recurrent stacks of many shapes.

use std::path::PathBuf;

use adaparam_lm::{Engine, Pass, Precision, Side, StackKind, StackPoint, StackSpeed};
use adaparam_report::{Cell, Column, Row, Table};
use anyhow::bail;
use clap::{Args, ValueEnum};

use crate::progress::Progress;
use crate::typed_number::whole_number;

/// Which shapes of the grid.
#[derive(Debug, Clone, Args)]
pub(super) struct GridChoice {
    /// Grid: widths of both layers [default: 128,256,650,1150]
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = whole_number::<u32>(10..=16_384), allow_negative_numbers = true)]
    hidden: Vec<u32>,
    /// Grid: rows of the batch [default: 1,20,64]
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = whole_number::<u32>(1..=4_096), allow_negative_numbers = true)]
    batch: Vec<u32>,
    /// Grid: steps of a window [default: 35,256]
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = whole_number::<u32>(1..=16_384), allow_negative_numbers = true)]
    window: Vec<u32>,
    /// Grid: only training or only inference
    #[arg(long, value_enum)]
    pass: Option<PassChoice>,
    /// Grid: only our kernels, or only Burn's LSTM
    #[arg(long, value_enum)]
    side: Option<SideChoice>,
    /// Grid: measure nothing, but print what bench/grid.py has measured as an SVG with heat maps of ratios
    #[arg(long, value_name = "FILE")]
    pub(super) draw: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PassChoice {
    /// Forward and backward
    Training,
    /// Forward
    Inference,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SideChoice {
    /// Our kernels
    Kernels,
    /// Burn's own `nn::Lstm`
    Burn,
}

impl GridChoice {
    pub(super) fn is_given(&self) -> bool {
        let lists = [&self.hidden, &self.batch, &self.window];
        lists.iter().any(|list| !list.is_empty())
            || self.pass.is_some()
            || self.side.is_some()
            || self.draw.is_some()
    }

    /// Every point that was asked for, the small ones first.
    ///
    /// # Errors
    ///
    /// If there is no stack of that name, none of them on that side, or no such pass in that precision.
    pub(super) fn points(
        &self,
        model: Option<&str>,
        precision: Precision,
    ) -> anyhow::Result<Vec<StackPoint>> {
        let models = match model {
            None => vec![StackKind::Alstm, StackKind::Lstm],
            Some("alstm") => vec![StackKind::Alstm],
            Some("lstm") => vec![StackKind::Lstm],
            Some(other) => bail!("--model = {other}: the grid has alstm and lstm"),
        };
        let has_gradients = precision != Precision::Int8;
        let passes = match self.pass {
            None if has_gradients => vec![Pass::Training, Pass::Inference],
            Some(PassChoice::Training) if has_gradients => vec![Pass::Training],
            Some(PassChoice::Training) => {
                bail!("--precision = int8: has no gradients: say --pass inference, or bf16");
            }
            None | Some(PassChoice::Inference) => vec![Pass::Inference],
        };
        let sides = match self.side {
            None if precision == Precision::F32 => vec![Side::Kernels, Side::Burn],
            None | Some(SideChoice::Kernels) => vec![Side::Kernels],
            Some(SideChoice::Burn) if precision == Precision::F32 => vec![Side::Burn],
            Some(SideChoice::Burn) => {
                bail!(
                    "--precision = {precision}: Burn's LSTM computes in f32: leave out --side, or say --side kernels"
                );
            }
        };
        let mut points = Vec::new();
        for hidden in sizes(&self.hidden, &[128, 256, 650, 1150]) {
            for window in sizes(&self.window, &[35, 256]) {
                for batch in sizes(&self.batch, &[1, 20, 64]) {
                    for &model in &models {
                        for &pass in &passes {
                            points.extend(sides.iter().map(|&side| StackPoint {
                                model,
                                hidden,
                                batch,
                                window,
                                pass,
                                side,
                            }));
                        }
                    }
                }
            }
        }
        points.retain(StackPoint::exists);
        if points.is_empty() {
            bail!(
                "--side = burn: Burn has no adaptive LSTM: leave out --model, or say --model lstm"
            );
        }
        Ok(points)
    }
}

fn sizes(given: &[u32], otherwise: &[u32]) -> Vec<usize> {
    let list = if given.is_empty() { otherwise } else { given };
    list.iter().map(|&size| size as usize).collect()
}

/// Measures one after the other.
pub(super) fn measure(points: &[StackPoint], engine: &Engine) -> Vec<StackSpeed> {
    let progress = Progress::new("Shapes", points.len(), points.len());
    let speeds = points.iter().map(|point| {
        let speed = point.measure(engine);
        progress.advance(1, || {
            format!("{} × {} × {}", point.hidden, point.batch, point.window)
        });
        speed
    });
    let speeds = speeds.collect();
    progress.finish();
    speeds
}

pub(super) fn table(speeds: &[StackSpeed]) -> Table {
    let row = |speed: &StackSpeed| {
        let point = &speed.point;
        let name = match (point.model, point.side) {
            (StackKind::Alstm, _) => "aLSTM",
            (StackKind::Lstm, Side::Kernels) => "LSTM",
            (StackKind::Lstm, Side::Burn) => "LSTM, Burn's own",
        };
        let pass = match point.pass {
            Pass::Training => "training",
            Pass::Inference => "inference",
        };
        Row::new(vec![
            Cell::from(name),
            Cell::from(pass),
            Cell::from(point.hidden.to_string()),
            Cell::from(point.batch.to_string()),
            Cell::from(point.window.to_string()),
            Cell::from(format!("{:.2}", speed.ms)),
            Cell::from(format!(
                "{:.0}",
                1e3 * (point.batch * point.window) as f64 / speed.ms
            )),
        ])
    };
    Table {
        caption: "Two recurrent layers of many shapes".to_owned(),
        columns: vec![
            Column::text("Layers"),
            Column::text("Pass"),
            Column::number("Hidden"),
            Column::number("Batch"),
            Column::number("Window"),
            Column::number("A window").unit("ms"),
            Column::number("Words per second"),
        ],
        rows: speeds.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: GridChoice = GridChoice {
        hidden: Vec::new(),
        batch: Vec::new(),
        window: Vec::new(),
        pass: None,
        side: None,
        draw: None,
    };

    #[test]
    fn the_whole_grid_has_every_shape_with_our_kernels_and_burns_lstm() {
        let points = ALL.points(None, Precision::F32).unwrap();
        // 24 shapes, training and inference; two stacks of ours and one of Burn's.
        assert_eq!(points.len(), 24 * 2 * 3);
        let alstm = ALL.points(Some("alstm"), Precision::F32).unwrap();
        assert_eq!(alstm.len(), 24 * 2);
        // Burn knows f32 only, and bytes have no gradients.
        assert_eq!(ALL.points(None, Precision::Bf16).unwrap().len(), 24 * 2 * 2);
        assert_eq!(ALL.points(None, Precision::Int8).unwrap().len(), 24 * 2);
        assert!(!ALL.is_given());
    }

    #[test]
    fn what_the_grid_does_not_have_is_refused() {
        let burn = GridChoice {
            side: Some(SideChoice::Burn),
            ..ALL
        };
        assert!(burn.is_given());
        let all_of_burn = burn.points(None, Precision::F32).unwrap();
        assert_eq!(all_of_burn.len(), 24 * 2);
        let training = GridChoice {
            pass: Some(PassChoice::Training),
            ..ALL
        };
        for (choice, model, precision) in [
            (&burn, Some("alstm"), Precision::F32),
            (&ALL, Some("gru"), Precision::F32),
            (&burn, None, Precision::Bf16),
            (&training, None, Precision::Int8),
        ] {
            let error = choice.points(model, precision).unwrap_err().to_string();
            assert!(error.starts_with("--"), "{error}");
        }
    }
}
