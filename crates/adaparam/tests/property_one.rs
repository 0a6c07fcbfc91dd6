//! Property 1: for given `W` and `x` and any `G` there are diagonals with `G x = D(2) W D(1) x`.

use adaparam::property::{ExpressError, IoDiagonals, express, express_by_column};
use burn::tensor::{Device, Tensor, TensorData};
use proptest::prelude::*;

fn matrix(rows: usize, values: &[f32]) -> Tensor<2> {
    Tensor::from_data(
        TensorData::new(values.to_vec(), [rows, values.len() / rows]),
        &Device::flex(),
    )
}

fn vector(values: &[f32]) -> Tensor<1> {
    Tensor::from_data(TensorData::from(values), &Device::flex())
}

fn product(w: &Tensor<2>, x: Tensor<1>) -> Vec<f64> {
    w.clone()
        .matmul(x.unsqueeze_dim(1))
        .into_data()
        .iter::<f64>()
        .collect()
}

fn assert_expresses(g: &Tensor<2>, w: &Tensor<2>, x: &Tensor<1>, found: &IoDiagonals) {
    let by_g = product(g, x.clone());
    let adapted = product(w, x.clone() * found.d1.clone());
    let d2: Vec<f64> = found.d2.to_data().iter::<f64>().collect();
    for row in 0..by_g.len() {
        let (expected, actual) = (by_g[row], d2[row] * adapted[row]);
        // f32 products of at most nine terms between -10 and 10.
        assert!(
            (expected - actual).abs() <= 1e-3,
            "row {row}: {actual} instead of {expected}"
        );
    }
}

/// Numbers that stay away from 0, with a sign.
fn away_from_zero() -> impl Strategy<Value = f32> {
    (0.1f32..10.0, any::<bool>()).prop_map(|(size, negative)| if negative { -size } else { size })
}

proptest! {
    #[test]
    fn any_matrix_can_be_expressed(
        (rows, columns, g, w, x) in (1usize..9, 1usize..9).prop_flat_map(|(rows, columns)| (
            Just(rows),
            Just(columns),
            prop::collection::vec(-10.0f32..10.0, rows * columns),
            prop::collection::vec(away_from_zero(), rows * columns),
            prop::collection::vec(prop_oneof![away_from_zero(), Just(0.0)], columns),
        ))
    ) {
        prop_assume!(x.iter().any(|&x| x != 0.0));
        let (g, w) = (matrix(rows, &g), matrix(rows, &w));
        let input = vector(&x);
        assert_expresses(&g, &w, &input, &express(g.clone(), w.clone(), input.clone()).unwrap());
        prop_assert_eq!(x.len(), columns);
        for (column, &at_column) in x.iter().enumerate() {
            let found = express_by_column(g.clone(), w.clone(), input.clone(), column);
            if at_column == 0.0 {
                prop_assert_eq!(found.unwrap_err(), ExpressError::ZeroInputAt { column });
            } else {
                assert_expresses(&g, &w, &input, &found.unwrap());
            }
        }
    }
}

#[test]
fn an_input_of_zeros_expresses_nothing() {
    let (g, w) = (matrix(1, &[1.0, 2.0]), matrix(1, &[3.0, 4.0]));
    let error = express(g, w, vector(&[0.0, 0.0])).unwrap_err();
    assert_eq!(error, ExpressError::ZeroInput);
    assert!(
        error
            .to_string()
            .contains("at least one input must differ from 0")
    );
}

#[test]
fn a_zero_in_the_only_usable_column_is_named() {
    let g = matrix(2, &[1.0, 2.0, 3.0, 4.0]);
    let w = matrix(2, &[1.0, 5.0, 0.0, 6.0]);
    let error = express(g, w, vector(&[2.0, 0.0])).unwrap_err();
    assert_eq!(
        error,
        ExpressError::ZeroWeight {
            row: 1,
            column: 0,
            needed: 6.0
        }
    );
    assert!(error.to_string().contains("W[1, 0] is zero"), "{error}");
}

#[test]
fn a_column_with_a_zero_is_avoided_where_another_serves() {
    let g = matrix(2, &[1.0, 2.0, 3.0, 4.0]);
    let w = matrix(2, &[1.0, 5.0, 0.0, 6.0]);
    let x = vector(&[9.0, 0.5]);
    assert_expresses(
        &g,
        &w,
        &x,
        &express(g.clone(), w.clone(), x.clone()).unwrap(),
    );
}

#[test]
fn a_zero_in_w_is_no_hindrance_where_nothing_is_needed() {
    let g = matrix(2, &[1.0, 0.0]);
    let w = matrix(2, &[2.0, 0.0]);
    let x = vector(&[3.0]);
    assert_expresses(
        &g,
        &w,
        &x,
        &express(g.clone(), w.clone(), x.clone()).unwrap(),
    );
}

#[test]
fn shapes_columns_and_numbers_are_checked() {
    let w = || matrix(1, &[1.0, 2.0]);
    let x = || vector(&[1.0, 1.0]);
    let shape = express(matrix(2, &[1.0, 2.0]), w(), x()).unwrap_err();
    assert_eq!(
        shape,
        ExpressError::Shape {
            g: [2, 1],
            w: [1, 2],
            x: 2
        }
    );
    let column = express_by_column(w(), w(), x(), 2).unwrap_err();
    assert_eq!(
        column,
        ExpressError::NoSuchColumn {
            column: 2,
            inputs: 2
        }
    );
    let infinite = express(matrix(1, &[1.0, f32::INFINITY]), w(), x()).unwrap_err();
    assert_eq!(
        infinite,
        ExpressError::NotFinite {
            name: "G",
            value: f64::INFINITY
        }
    );
}
