//! Matrices of f64 that remember how they came about, so that gradients of anything written with them can be had.
//!
//! Everything is as plain as it can be: this is what the layers are checked against.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Sub};
use std::rc::Rc;

/// Rows of numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) values: Vec<f64>,
}

impl Matrix {
    pub(crate) fn new(rows: usize, columns: usize, values: Vec<f64>) -> Self {
        assert_eq!(
            values.len(),
            rows * columns,
            "a matrix of {rows}, {columns}"
        );
        Self {
            rows,
            columns,
            values,
        }
    }

    pub(crate) fn zeros(rows: usize, columns: usize) -> Self {
        Self::new(rows, columns, vec![0.0; rows * columns])
    }

    /// The entry at a place; the only one of an axis that has one stands for all.
    fn at(&self, row: usize, column: usize) -> f64 {
        self.values[self.index(row, column)]
    }

    fn index(&self, row: usize, column: usize) -> usize {
        let row = if self.rows == 1 { 0 } else { row };
        let column = if self.columns == 1 { 0 } else { column };
        row * self.columns + column
    }

    fn from_fn(rows: usize, columns: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let values = places.map(|(row, column)| entry(row, column)).collect();
        Self::new(rows, columns, values)
    }

    /// Adds a number to each entry, `more(row, column)` to that at this place.
    fn add_all(&mut self, [rows, columns]: [usize; 2], more: impl Fn(usize, usize) -> f64) {
        for row in 0..rows {
            for column in 0..columns {
                let index = self.index(row, column);
                self.values[index] += more(row, column);
            }
        }
    }
}

/// What a value was made of: gives each of these its share of the gradient.
type Pull = Box<dyn Fn(&Matrix, &mut [Matrix])>;

#[derive(Default)]
struct Nodes {
    values: Vec<Rc<Matrix>>,
    pulls: Vec<Option<Pull>>,
}

/// Where values are noted in the order in which they come about.
#[derive(Clone, Default)]
pub(crate) struct Tape(Rc<RefCell<Nodes>>);

/// A matrix on a tape.
#[derive(Clone)]
pub(crate) struct Value {
    tape: Tape,
    index: usize,
    matrix: Rc<Matrix>,
}

impl Tape {
    /// A value that comes from nowhere.
    pub(crate) fn value(&self, matrix: Matrix) -> Value {
        self.push(matrix, None)
    }

    fn push(&self, matrix: Matrix, pull: Option<Pull>) -> Value {
        let mut nodes = self.0.borrow_mut();
        let matrix = Rc::new(matrix);
        nodes.values.push(Rc::clone(&matrix));
        nodes.pulls.push(pull);
        Value {
            tape: self.clone(),
            index: nodes.values.len() - 1,
            matrix,
        }
    }

    /// The gradients of `Σ value ⊙ weight` over these pairs, for every value on the tape.
    pub(crate) fn gradients(&self, of: &[(Value, Matrix)]) -> Gradients {
        let nodes = self.0.borrow();
        let zeros = |value: &Rc<Matrix>| Matrix::zeros(value.rows, value.columns);
        let mut all: Vec<Matrix> = nodes.values.iter().map(zeros).collect();
        for (value, weight) in of {
            let sizes = [weight.rows, weight.columns];
            all[value.index].add_all(sizes, |row, column| weight.at(row, column));
        }
        for index in (0..all.len()).rev() {
            if let Some(pull) = &nodes.pulls[index] {
                let (before, rest) = all.split_at_mut(index);
                pull(&rest[0], before);
            }
        }
        Gradients(all)
    }
}

/// A gradient for every value of a tape.
pub(crate) struct Gradients(Vec<Matrix>);

impl Gradients {
    pub(crate) fn of(&self, value: &Value) -> &Matrix {
        &self.0[value.index]
    }
}

impl Value {
    pub(crate) fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// `x Wᵀ`: each row through a matrix `[out, in]`.
    pub(crate) fn through(&self, weight: &Self) -> Self {
        let (x, w) = (Rc::clone(&self.matrix), Rc::clone(&weight.matrix));
        assert_eq!(
            x.columns, w.columns,
            "a row goes through a matrix [out, in]"
        );
        let entry = |row: usize, out: usize| {
            let products = (0..x.columns).map(|k| x.at(row, k) * w.values[out * w.columns + k]);
            products.sum()
        };
        let result = Matrix::from_fn(x.rows, w.rows, entry);
        let (of_x, of_w) = (self.index, weight.index);
        let pull: Pull = Box::new(move |gradient, all| {
            for row in 0..x.rows {
                for out in 0..w.rows {
                    let g = gradient.values[row * w.rows + out];
                    for k in 0..x.columns {
                        all[of_x].values[row * x.columns + k] += g * w.values[out * w.columns + k];
                        all[of_w].values[out * w.columns + k] += g * x.values[row * x.columns + k];
                    }
                }
            }
        });
        self.tape.push(result, Some(pull))
    }

    /// `f` of each pair of entries, where `slopes` gives the derivatives for both.
    fn pairwise(
        &self,
        other: &Self,
        f: impl Fn(f64, f64) -> f64,
        slopes: impl Fn(f64, f64) -> (f64, f64) + 'static,
    ) -> Self {
        let (a, b) = (Rc::clone(&self.matrix), Rc::clone(&other.matrix));
        let fits = |a: usize, b: usize| a == b || a == 1 || b == 1;
        assert!(
            fits(a.rows, b.rows) && fits(a.columns, b.columns),
            "[{}, {}] and [{}, {}]",
            a.rows,
            a.columns,
            b.rows,
            b.columns
        );
        let sizes = [a.rows.max(b.rows), a.columns.max(b.columns)];
        let result = Matrix::from_fn(sizes[0], sizes[1], |row, column| {
            f(a.at(row, column), b.at(row, column))
        });
        let (of_a, of_b) = (self.index, other.index);
        let pull: Pull = Box::new(move |gradient, all| {
            let slope = |row, column| slopes(a.at(row, column), b.at(row, column));
            all[of_a].add_all(sizes, |row, column| {
                gradient.at(row, column) * slope(row, column).0
            });
            all[of_b].add_all(sizes, |row, column| {
                gradient.at(row, column) * slope(row, column).1
            });
        });
        self.tape.push(result, Some(pull))
    }

    /// `f` of each entry, with the derivative `slope`.
    fn each(&self, f: impl Fn(f64) -> f64, slope: impl Fn(f64) -> f64 + 'static) -> Self {
        let x = Rc::clone(&self.matrix);
        let result = Matrix::from_fn(x.rows, x.columns, |row, column| f(x.at(row, column)));
        let of = self.index;
        let pull: Pull = Box::new(move |gradient, all| {
            all[of].add_all([x.rows, x.columns], |row, column| {
                gradient.at(row, column) * slope(x.at(row, column))
            });
        });
        self.tape.push(result, Some(pull))
    }

    pub(crate) fn tanh(&self) -> Self {
        self.each(f64::tanh, |x| 1.0 - x.tanh().powi(2))
    }

    pub(crate) fn sigmoid(&self) -> Self {
        self.each(sigmoid, |x| sigmoid(x) * sigmoid(-x))
    }

    pub(crate) fn relu(&self) -> Self {
        self.each(|x| x.max(0.0), |x| if x > 0.0 { 1.0 } else { 0.0 })
    }

    pub(crate) fn exp(&self) -> Self {
        self.each(f64::exp, f64::exp)
    }

    /// `ln σ(x)`.
    pub(crate) fn log_sigmoid(&self) -> Self {
        self.each(|x| -(-x).exp().ln_1p(), |x| sigmoid(-x))
    }

    pub(crate) fn sqrt(&self) -> Self {
        self.each(f64::sqrt, |x| 0.5 / x.sqrt())
    }

    pub(crate) fn plus(&self, number: f64) -> Self {
        self.each(|x| x + number, |_| 1.0)
    }

    pub(crate) fn times(&self, number: f64) -> Self {
        self.each(|x| x * number, move |_| number)
    }

    /// `1 − x`.
    pub(crate) fn complement(&self) -> Self {
        self.times(-1.0).plus(1.0)
    }

    pub(crate) fn min(&self, other: &Self) -> Self {
        let slopes = |a, b| if a <= b { (1.0, 0.0) } else { (0.0, 1.0) };
        self.pairwise(other, f64::min, slopes)
    }

    pub(crate) fn max(&self, other: &Self) -> Self {
        let slopes = |a, b| if a >= b { (1.0, 0.0) } else { (0.0, 1.0) };
        self.pairwise(other, f64::max, slopes)
    }

    /// `self` where `condition` has a number above 0, `other` elsewhere. The condition has no gradient.
    pub(crate) fn where_above_zero(&self, condition: &Self, other: &Self) -> Self {
        let is_above = condition.each(|x| if x > 0.0 { 1.0 } else { 0.0 }, |_| 0.0);
        is_above.clone() * self.clone() + is_above.complement() * other.clone()
    }

    /// The mean of each row.
    pub(crate) fn mean(&self) -> Self {
        let x = Rc::clone(&self.matrix);
        let count = x.columns as f64;
        let result = Matrix::from_fn(x.rows, 1, |row, _| {
            (0..x.columns).map(|column| x.at(row, column)).sum::<f64>() / count
        });
        let of = self.index;
        let pull: Pull = Box::new(move |gradient, all| {
            all[of].add_all([x.rows, x.columns], |row, _| gradient.at(row, 0) / count);
        });
        self.tape.push(result, Some(pull))
    }

    /// The columns from `first` on, `count` of them.
    pub(crate) fn part(&self, first: usize, count: usize) -> Self {
        let x = Rc::clone(&self.matrix);
        let result = Matrix::from_fn(x.rows, count, |row, column| {
            x.values[row * x.columns + first + column]
        });
        let of = self.index;
        let pull: Pull = Box::new(move |gradient, all| {
            for row in 0..x.rows {
                for column in 0..count {
                    let share = gradient.values[row * count + column];
                    all[of].values[row * x.columns + first + column] += share;
                }
            }
        });
        self.tape.push(result, Some(pull))
    }

    /// Both side by side.
    pub(crate) fn beside(&self, other: &Self) -> Self {
        let (a, b) = (Rc::clone(&self.matrix), Rc::clone(&other.matrix));
        assert_eq!(a.rows, b.rows, "rows side by side");
        let result = Matrix::from_fn(a.rows, a.columns + b.columns, |row, column| {
            if column < a.columns {
                a.at(row, column)
            } else {
                b.at(row, column - a.columns)
            }
        });
        let (of_a, of_b) = (self.index, other.index);
        let pull: Pull = Box::new(move |gradient, all| {
            all[of_a].add_all([a.rows, a.columns], |row, column| gradient.at(row, column));
            all[of_b].add_all([b.rows, b.columns], |row, column| {
                gradient.at(row, a.columns + column)
            });
        });
        self.tape.push(result, Some(pull))
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl Add for Value {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.pairwise(&other, |a, b| a + b, |_, _| (1.0, 1.0))
    }
}

impl Sub for Value {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.pairwise(&other, |a, b| a - b, |_, _| (1.0, -1.0))
    }
}

impl Mul for Value {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        self.pairwise(&other, |a, b| a * b, |a, b| (b, a))
    }
}

impl Div for Value {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        self.pairwise(&other, |a, b| a / b, |a, b| (1.0 / b, -a / (b * b)))
    }
}
