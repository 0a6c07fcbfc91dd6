//! Numbers written for people: a real minus sign, few digits, `k`, `M` and `G` for thousands, millions and milliards,
//! and powers of ten only where nothing shorter reads well.

const SUFFIXES: [&str; 5] = ["", "k", "M", "G", "T"];

/// Three significant digits: `0.012`, `1.23k`, `43.3M`, `3.2×10⁻⁵`.
pub fn short(value: f64) -> String {
    if let Some(word) = special(value) {
        return word;
    }
    let (mantissa, exponent) = decompose(value, 2);
    match exponent {
        -3..=2 => with_minus(&trimmed(&format!("{value:.*}", (2 - exponent) as usize))),
        3..=14 => {
            let shift = exponent % 3;
            let scaled = mantissa * 10_f64.powi(shift);
            with_minus(&trimmed(&format!("{scaled:.*}", (2 - shift) as usize)))
                + SUFFIXES[(exponent / 3) as usize]
        }
        _ => scientific(mantissa, exponent),
    }
}

/// Five significant digits: `94.412`, `1,310.5`, `0.003`, `3.2×10⁻⁵`.
pub(crate) fn precise(value: f64) -> String {
    if let Some(word) = special(value) {
        return word;
    }
    let (mantissa, exponent) = decompose(value, 4);
    match exponent {
        -4..=14 => trimmed(&fixed(value, (4 - exponent).max(0) as usize)),
        _ => scientific(mantissa, exponent),
    }
}

/// A fixed number of decimals, thousands separated by commas: `−1,234.50`.
fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return special(value).unwrap_or_default();
    }
    let digits = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let sign = if value < 0.0 && digits.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) {
        "−"
    } else {
        ""
    };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{fraction}", separated(whole))
}

/// A whole number with its thousands separated: `17,197,800`.
pub fn grouped(value: u64) -> String {
    separated(&value.to_string())
}

/// A share of one as per cent with one decimal: `0.5 %`. Little but something is not written as nothing.
pub(crate) fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.0005 {
        return "< 0.1 %".to_owned();
    }
    format!("{} %", trimmed(&fixed(share * 100.0, 1)))
}

/// `1 point`, `2 points`, `12,000 points`.
pub fn count(amount: usize, singular: &str) -> String {
    let plural = if amount == 1 { "" } else { "s" };
    format!("{} {singular}{plural}", grouped(amount as u64))
}

/// A time: `1 h 02 min`, `3 min 20 s` or `4.2 s`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        3_600.. => format!("{} h {:02} min", whole / 3_600, whole / 60 % 60),
        60.. => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{seconds:.1} s"),
    }
}

/// Labels of evenly spaced ticks: all with the same suffix and the same number of decimals.
pub(crate) fn even_labels(values: &[f64], step: f64) -> Vec<String> {
    let largest = values
        .iter()
        .fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let (power, suffix) = if largest == 0.0 || (1e-4..1e4).contains(&largest) {
        (0, String::new())
    } else if (1e4..1e15).contains(&largest) {
        let thousands = (largest.log10() / 3.0 + 1e-9).floor() as i32;
        (3 * thousands, SUFFIXES[thousands as usize].to_owned())
    } else {
        let power = (largest.log10() + 1e-9).floor() as i32;
        (power, format!("×10{}", superscript(power)))
    };
    let unit = 10_f64.powi(power);
    let decimals = (0..=12)
        .find(|places| is_whole(step / unit * 10_f64.powi(*places)))
        .unwrap_or(12) as usize;
    values
        .iter()
        .map(|value| {
            if *value == 0.0 {
                "0".to_owned()
            } else {
                with_minus(&format!("{:.decimals$}", value / unit)) + &suffix
            }
        })
        .collect()
}

fn is_whole(value: f64) -> bool {
    (value - value.round()).abs() < 1e-6 * value.abs().max(1.0) && value.round() != 0.0
}

fn special(value: f64) -> Option<String> {
    let word = match value {
        value if value.is_nan() => "–",
        value if value == f64::INFINITY => "∞",
        value if value == f64::NEG_INFINITY => "−∞",
        0.0 => "0",
        _ => return None,
    };
    Some(word.to_owned())
}

/// Mantissa and decimal exponent after rounding to `decimals` places of the mantissa, so that 999.6 counts as 1000.
fn decompose(value: f64, decimals: usize) -> (f64, i32) {
    let text = format!("{value:.decimals$e}");
    let (mantissa, exponent) = text
        .split_once('e')
        .expect("`e` formatting writes an exponent");
    (
        mantissa.parse().expect("a formatted mantissa parses"),
        exponent.parse().expect("a formatted exponent parses"),
    )
}

fn scientific(mantissa: f64, exponent: i32) -> String {
    let power = format!("10{}", superscript(exponent));
    match trimmed(&format!("{mantissa:.2}")).as_str() {
        "1" => power,
        "-1" => format!("−{power}"),
        digits => format!("{}×{power}", with_minus(digits)),
    }
}

fn superscript(exponent: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    exponent
        .to_string()
        .chars()
        .map(|character| {
            character
                .to_digit(10)
                .map_or('⁻', |digit| DIGITS[digit as usize])
        })
        .collect()
}

fn trimmed(digits: &str) -> String {
    if digits.contains('.') {
        digits
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned()
    } else {
        digits.to_owned()
    }
}

fn with_minus(digits: &str) -> String {
    digits.replace('-', "−")
}

fn separated(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precise_numbers_have_five_digits() {
        for (value, expected) in [
            (94.4123, "94.412"),
            (1310.5, "1,310.5"),
            (0.003, "0.003"),
            (-12.0, "−12"),
            (17_197_800.0, "17,197,800"),
            (3.2e-5, "3.2×10⁻⁵"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(precise(value), expected);
        }
    }

    #[test]
    fn short_numbers_read_well_at_every_magnitude() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-2.5, "−2.5"),
            (0.012, "0.012"),
            (0.001_234, "0.00123"),
            (999.4, "999"),
            (999.6, "1k"),
            (1_200.0, "1.2k"),
            (624_000.0, "624k"),
            (999_999.0, "1M"),
            (-43_300_000.0, "−43.3M"),
            (3.2e-5, "3.2×10⁻⁵"),
            (1e-7, "10⁻⁷"),
            (-1e20, "−10²⁰"),
            (f64::NAN, "–"),
            (f64::INFINITY, "∞"),
        ] {
            assert_eq!(short(value), expected, "{value:e}");
        }
    }

    #[test]
    fn fixed_numbers_group_thousands_and_never_write_minus_zero() {
        assert_eq!(fixed(-1234.5, 2), "−1,234.50");
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(fixed(97.0, 0), "97");
        assert_eq!(fixed(1e6, 0), "1,000,000");
        assert_eq!(grouped(17_197_800), "17,197,800");
        assert_eq!(grouped(100), "100");
    }

    #[test]
    fn evenly_spaced_labels_share_decimals_and_suffix() {
        assert_eq!(
            even_labels(&[-0.5, 0.0, 0.5, 1.0], 0.5),
            ["−0.5", "0", "0.5", "1.0"]
        );
        assert_eq!(
            even_labels(&[0.0, 5_000.0, 10_000.0], 5_000.0),
            ["0", "5k", "10k"]
        );
        assert_eq!(
            even_labels(&[0.0, 500_000.0, 1_000_000.0], 500_000.0),
            ["0", "0.5M", "1.0M"]
        );
        assert_eq!(even_labels(&[0.0, 0.02, 0.04], 0.02), ["0", "0.02", "0.04"]);
        assert_eq!(even_labels(&[2_000.0, 4_000.0], 2_000.0), ["2000", "4000"]);
        assert_eq!(
            even_labels(&[1.5e-9, 2e-9], 5e-10),
            ["1.5×10⁻⁹", "2.0×10⁻⁹"]
        );
    }

    #[test]
    fn shares_have_one_decimal_and_small_ones_do_not_vanish() {
        for (share, expected) in [
            (0.0, "0 %"),
            (0.00001, "< 0.1 %"),
            (0.005_99, "0.6 %"),
            (0.5, "50 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(percent(share), expected);
        }
    }

    #[test]
    fn counts_agree_with_their_noun() {
        assert_eq!(count(1, "point"), "1 point");
        assert_eq!(count(12_000, "point"), "12,000 points");
    }

    #[test]
    fn durations_are_told_in_words() {
        assert_eq!(duration(4.25), "4.2 s");
        assert_eq!(duration(200.0), "3 min 20 s");
        assert_eq!(duration(3_720.0), "1 h 02 min");
    }
}
