//! Order statistics.

use super::scale::ScaleKind;

/// The value below which a share of the sorted values lies, interpolated between neighbours.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = place.ceil() as usize;
    if above == below || sorted[below].is_infinite() {
        return sorted[below];
    }
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// The drawable values, in order.
pub(super) fn sorted(kind: ScaleKind, values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values
        .into_iter()
        .filter(|value| kind.admits(*value))
        .collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        assert!((quantile(&[1.0, 2.0, 3.0, 4.0], 0.5) - 2.5).abs() < 1e-12);
        assert!((quantile(&[1.0, 2.0], 1.0) - 2.0).abs() < 1e-12);
        assert!(quantile(&[], 0.5).is_nan());
        let infinite = [1.0, f64::INFINITY, f64::INFINITY];
        assert!(
            [0.5, 0.75, 1.0]
                .iter()
                .all(|share| quantile(&infinite, *share) == f64::INFINITY)
        );
    }

    #[test]
    fn only_drawable_values_are_sorted() {
        assert_eq!(
            sorted(ScaleKind::Log, [3.0, f64::NAN, -1.0, 2.0]),
            [2.0, 3.0]
        );
    }
}
