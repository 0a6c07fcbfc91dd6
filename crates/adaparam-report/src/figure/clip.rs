//! Keeping lines inside the plot, and long lines short.

use super::canvas::Outline;

/// A rectangle in pixels; `top` is the smaller y.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Area {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn contains(&self, (x, y): (f64, f64)) -> bool {
        (self.left..=self.right).contains(&x) && (self.top..=self.bottom).contains(&y)
    }

    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// The part of a segment inside the rectangle (Liang and Barsky).
    pub(super) fn clip(
        &self,
        from: (f64, f64),
        to: (f64, f64),
    ) -> Option<((f64, f64), (f64, f64))> {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
        for (towards, distance) in [
            (-dx, from.0 - self.left),
            (dx, self.right - from.0),
            (-dy, from.1 - self.top),
            (dy, self.bottom - from.1),
        ] {
            if towards == 0.0 {
                if distance < 0.0 {
                    return None;
                }
            } else if towards < 0.0 {
                enter = enter.max(distance / towards);
            } else {
                leave = leave.min(distance / towards);
            }
        }
        let at = |share: f64| (from.0 + share * dx, from.1 + share * dy);
        (enter <= leave).then(|| (at(enter), at(leave)))
    }
}

/// An open line through `points`, without the parts outside `area`.
pub(super) fn polyline(points: &[(f64, f64)], area: &Area) -> Outline {
    let mut outline = Outline::default();
    let mut pen: Option<(f64, f64)> = None;
    for pair in points.windows(2) {
        let Some((from, to)) = area.clip(pair[0], pair[1]) else {
            pen = None;
            continue;
        };
        if pen != Some(from) {
            outline.move_to(from);
        }
        outline.line_to(to);
        pen = Some(to);
    }
    outline
}

/// Thins a line that runs from left to right to at most four points a pixel: the first, the last, the highest and the
/// lowest, so that it looks the same.
pub(super) fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    for column in points.chunk_by(|one, other| same(one.0.floor(), other.0.floor())) {
        let by_height =
            |one: &&usize, other: &&usize| column[**one].1.total_cmp(&column[**other].1);
        let indices: Vec<usize> = (0..column.len()).collect();
        let mut chosen: Vec<usize> = [
            indices.first(),
            indices.iter().min_by(by_height),
            indices.iter().max_by(by_height),
            indices.last(),
        ]
        .into_iter()
        .flatten()
        .copied()
        .collect();
        chosen.sort_unstable();
        chosen.dedup();
        kept.extend(chosen.into_iter().map(|index| column[index]));
    }
    kept
}

fn same(one: f64, other: f64) -> bool {
    one.to_bits() == other.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area {
        left: 0.0,
        top: 0.0,
        right: 10.0,
        bottom: 10.0,
    };

    #[test]
    fn a_line_is_cut_where_it_leaves() {
        let outline = polyline(&[(-5.0, 5.0), (5.0, 5.0), (5.0, 25.0)], &AREA);
        assert_eq!(outline.to_string(), "M0 5L5 5 5 10");
    }

    #[test]
    fn a_line_that_comes_back_starts_anew() {
        let outline = polyline(&[(1.0, 9.0), (1.0, 11.0), (3.0, 11.0), (3.0, 9.0)], &AREA);
        assert_eq!(outline.to_string(), "M1 9L1 10M3 10L3 9");
    }

    #[test]
    fn a_line_outside_leaves_nothing() {
        assert!(polyline(&[(-5.0, -5.0), (-1.0, 20.0)], &AREA).is_empty());
    }

    #[test]
    fn thinning_keeps_ends_and_peaks_of_each_column() {
        let points: Vec<(f64, f64)> = (0..1000)
            .map(|index| {
                (
                    f64::from(index) / 100.0,
                    if index == 555 {
                        99.0
                    } else {
                        f64::from(index % 7)
                    },
                )
            })
            .collect();
        let kept = thinned(&points);
        assert!(kept.len() <= 40, "{}", kept.len());
        assert_eq!(kept[0], points[0]);
        assert_eq!(kept[kept.len() - 1], points[999]);
        assert!(kept.contains(&(5.55, 99.0)));
    }
}
