//! Words of a text at which a model is much as it is at a chosen word, by the latent variable of its policy.

use std::ops::Range;

use adaparam_data::text::Vocabulary;
use serde::Serialize;

use crate::background::{Background, LatentBackground};
use crate::rows::Rows;

/// Words that are found.
const FOUND: usize = 6;
/// Words that are told before and behind one that was found.
const BEFORE: usize = 4;
const BEHIND: usize = 3;
/// A unit is on where it is this many standard deviations from its mean.
const ON: f32 = 1.0;
/// Most words of a selection.
pub const LONGEST: usize = 8;

/// A place of the text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Neighbour {
    /// The words before it.
    pub before: String,
    /// The word, or the words.
    pub words: String,
    /// Those behind it.
    pub behind: String,
    /// The distance of the latent variables, or of the chosen units of them, in standard deviations: the root of the mean
    /// square.
    pub distance: f32,
    /// How many of the chosen units are on there; all units where none were chosen.
    pub on: usize,
}

/// What is alike: units that are on at every word of a selection, and the places where the same ones are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Match {
    /// The units that are on at every word of the selection, with their sign.
    pub units: Vec<(usize, bool)>,
    /// The places where most of them are, the nearest first.
    pub places: Vec<Neighbour>,
}

/// The places whose latent variable is nearest to that of a word.
pub(crate) fn nearest(
    background: &Background,
    latent: &LatentBackground,
    word: &[f32],
    vocabulary: &Vocabulary,
) -> Vec<Neighbour> {
    let units: Vec<usize> = (0..word.len()).collect();
    let scored = (0..background.words()).map(|row| {
        let distance = distance(latent, word, latent.values.row(row), &units);
        (0, distance, background.place(row))
    });
    told(background, vocabulary, scored.collect(), 1, word.len())
}

/// Select, then match, as `LSTMVis` has it: the units that are on all along a selection of words, and the places of the text
/// where as many of them as possible are on just as long.
pub(crate) fn alike(
    background: &Background,
    latent: &LatentBackground,
    words: &Rows,
    selection: Range<usize>,
    vocabulary: &Vocabulary,
) -> Match {
    let end = selection
        .end
        .min(words.len())
        .min(selection.start + LONGEST);
    let selection = selection.start.min(end)..end;
    let length = selection.len();
    let sign_at = |row: &[f32], unit: usize| {
        let from_mean = row[unit] - latent.mean[unit];
        let is_on = from_mean.abs() >= ON * latent.deviation[unit] && latent.deviation[unit] > 0.0;
        is_on.then_some(from_mean > 0.0)
    };
    let all_along = |unit: usize| {
        let mut signs = selection.clone().map(|word| sign_at(words.row(word), unit));
        let first = signs.next()??;
        signs
            .all(|sign| sign == Some(first))
            .then_some((unit, first))
    };
    let units: Vec<(usize, bool)> = (0..words.width).filter_map(all_along).collect();
    if units.is_empty() {
        return Match {
            units,
            places: Vec::new(),
        };
    }
    let chosen: Vec<usize> = units.iter().map(|&(unit, _)| unit).collect();
    let scored = (0..background.words())
        .filter(|&place| background.is_unbroken(place, length))
        .map(|place| {
            let row = |step: usize| latent.values.row(background.row(place + step));
            let is_on = |&&(unit, sign): &&(usize, bool)| {
                (0..length).all(|step| sign_at(row(step), unit) == Some(sign))
            };
            let on = units.iter().filter(is_on).count();
            let steps = (0..length).zip(selection.clone());
            let squares = steps
                .map(|(step, word)| distance(latent, words.row(word), row(step), &chosen).powi(2));
            let distance = (squares.sum::<f32>() / length as f32).sqrt();
            (units.len() - on, distance, place)
        });
    let places = told(
        background,
        vocabulary,
        scored.collect(),
        length,
        units.len(),
    );
    Match { units, places }
}

/// The root of the mean square of the differences, each in standard deviations.
fn distance(latent: &LatentBackground, a: &[f32], b: &[f32], units: &[usize]) -> f32 {
    let square = |&unit: &usize| {
        let deviation = latent.deviation[unit].max(1e-6);
        ((a[unit] - b[unit]) / deviation).powi(2)
    };
    (units.iter().map(square).sum::<f32>() / units.len() as f32).sqrt()
}

/// The best of scored places, each as how many units are missing, how far it is and where.
fn told(
    background: &Background,
    vocabulary: &Vocabulary,
    mut scored: Vec<(usize, f32, usize)>,
    length: usize,
    units: usize,
) -> Vec<Neighbour> {
    let nearer = |a: &(usize, f32, usize), b: &(usize, f32, usize)| {
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2))
    };
    // Thousands of places are not put in order for the sake of a few.
    if scored.len() > FOUND {
        scored.select_nth_unstable_by(FOUND, nearer);
        scored.truncate(FOUND);
    }
    scored.sort_unstable_by(nearer);
    let best = scored.into_iter();
    best.map(|(missing, distance, place)| {
        let [before, words, behind] = background.around(place, length, BEFORE, BEHIND);
        Neighbour {
            before: spelled(vocabulary, before),
            words: spelled(vocabulary, words),
            behind: spelled(vocabulary, behind),
            distance,
            on: units - missing,
        }
    })
    .collect()
}

/// Words as people write them, a stroke where a line ends.
fn spelled(vocabulary: &Vocabulary, ids: &[u32]) -> String {
    let (mut before, mut text) = (None, Vec::new());
    for &id in ids {
        if id == vocabulary.line_end() {
            text.extend_from_slice(" ⏎".as_bytes());
            before = None;
            if vocabulary.tokens().is_default() {
                text.push(b' ');
            }
        } else {
            text.extend(vocabulary.spelling(id, before.replace(id)));
        }
    }
    let text = String::from_utf8_lossy(&text);
    if vocabulary.tokens().is_default() {
        text.trim().to_owned()
    } else {
        text.into_owned()
    }
}
