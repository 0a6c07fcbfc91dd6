//! Models of different kinds with the same number of parameters.

use adaparam_lm::ModelSpec;

/// No hidden state is larger.
const LARGEST: usize = 65_536;

/// The same model with the hidden state whose number of parameters is nearest to `parameters`.
///
/// Where the last layer is as wide as the word vectors, a stack of one layer gets its size by these. Behind the layers of some
/// cells there is a projection instead, so that one layer has a size of its own.
pub(super) fn with_parameters(
    model: &ModelSpec,
    vocabulary: usize,
    parameters: usize,
) -> ModelSpec {
    let count_of = |hidden| {
        let model = ModelSpec {
            hidden,
            ..model.clone()
        };
        model.parameter_count(vocabulary)
    };
    let has_own_size = count_of(1) != count_of(2);
    let sized = |hidden| ModelSpec {
        hidden,
        embedding: if has_own_size {
            model.embedding
        } else {
            hidden
        },
        ..model.clone()
    };
    let count = |hidden| sized(hidden).parameter_count(vocabulary);
    let mut above = 1;
    while count(above) < parameters && above < LARGEST {
        above *= 2;
    }
    let mut below = above / 2;
    while above - below > 1 {
        let middle = usize::midpoint(below, above);
        if count(middle) < parameters {
            below = middle;
        } else {
            above = middle;
        }
    }
    let nearest = [below.max(1), above]
        .into_iter()
        .min_by_key(|&hidden| count(hidden).abs_diff(parameters));
    sized(nearest.unwrap_or(above))
}

#[cfg(test)]
mod tests {
    use adaparam_lm::CellChoice;

    use super::*;

    #[test]
    fn the_size_of_a_model_is_found_again_from_its_parameters() {
        for kind in ["lstm", "adaptive-lstm"] {
            for hidden in [1, 2, 3, 64, 240, 1150] {
                let model = ModelSpec {
                    cell: CellChoice::named(kind),
                    hidden,
                    ..ModelSpec::default()
                };
                let found = with_parameters(&model, 10_000, model.parameter_count(10_000));
                assert_eq!(found.hidden, hidden);
            }
        }
    }

    #[test]
    fn one_layer_gets_its_size_by_the_word_vectors() {
        let model = ModelSpec {
            cell: CellChoice::named("rhn"),
            layers: 1,
            ..ModelSpec::default()
        };
        let found = with_parameters(&model, 10_000, 900_000);
        assert_eq!(found.embedding, found.hidden);
        let count = found.parameter_count(10_000) as f64;
        assert!((count / 900_000.0 - 1.0).abs() < 0.01, "{count}");
    }

    #[test]
    fn one_layer_with_a_projection_behind_it_keeps_the_word_vectors() {
        let model = ModelSpec {
            cell: CellChoice::named("melis-lstm"),
            layers: 1,
            embedding: 120,
            ..ModelSpec::default()
        };
        let found = with_parameters(&model, 10_000, 2_000_000);
        assert_eq!(found.embedding, 120);
        assert!(found.hidden > 120, "{}", found.hidden);
        let count = found.parameter_count(10_000) as f64;
        assert!((count / 2e6 - 1.0).abs() < 0.01, "{count}");
    }

    #[test]
    fn no_model_is_smaller_than_one_unit() {
        let model = ModelSpec::default();
        assert_eq!(with_parameters(&model, 10_000, 0).hidden, 1);
    }
}
