//! Colours that people with any colour vision can tell apart, on light and on dark ground.
//!
//! The hues follow Okabe and Ito; each is darkened for white paper and lightened for a dark page until it reaches a
//! contrast of at least 3 : 1.

/// A colour of the palette.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// Blue, the adaptive models of the paper's figures.
    #[default]
    Blue,
    /// Bluish green, the baseline of the paper's figures.
    Green,
    /// Black on light ground, near white on dark ground: the ground truth.
    Black,
    /// Orange, other people's results.
    Orange,
    /// Vermilion.
    Red,
    /// Purple.
    Purple,
    /// Grey, for context.
    Grey,
}

impl Colour {
    /// Adaptive models.
    pub const ADAPTIVE: Self = Self::Blue;
    /// Baselines.
    pub const BASELINE: Self = Self::Green;
    /// Ground truth.
    pub(super) const TRUTH: Self = Self::Black;

    /// Every colour, in the order in which unnamed series take them.
    pub const ALL: [Self; 7] = [
        Self::Blue,
        Self::Green,
        Self::Orange,
        Self::Purple,
        Self::Red,
        Self::Black,
        Self::Grey,
    ];

    /// The colour of the `index`-th of many series; starts again after the last.
    pub fn nth(index: usize) -> Self {
        Self::ALL[index % Self::ALL.len()]
    }

    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Blue => "apf-blue",
            Self::Green => "apf-green",
            Self::Black => "apf-black",
            Self::Orange => "apf-orange",
            Self::Red => "apf-red",
            Self::Purple => "apf-purple",
            Self::Grey => "apf-grey",
        }
    }

    pub(super) const fn on(self, ground: Ground) -> &'static str {
        match (self, ground) {
            (Self::Blue, Ground::Light) => "#0069b0",
            (Self::Blue, Ground::Dark) => "#5fb2f5",
            (Self::Green, Ground::Light) => "#00875f",
            (Self::Green, Ground::Dark) => "#3fcf9f",
            (Self::Black, Ground::Light) => "#1b1f24",
            (Self::Black, Ground::Dark) => "#eef0f2",
            (Self::Orange, Ground::Light) => "#bd7400",
            (Self::Orange, Ground::Dark) => "#f0b03c",
            (Self::Red, Ground::Light) => "#cf4a0c",
            (Self::Red, Ground::Dark) => "#ff8a5c",
            (Self::Purple, Ground::Light) => "#a8508a",
            (Self::Purple, Ground::Dark) => "#e29ac8",
            (Self::Grey, Ground::Light) => "#7a828c",
            (Self::Grey, Ground::Dark) => "#98a1ac",
        }
    }
}

/// What a drawing stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    Light,
    Dark,
}

impl Ground {
    pub(super) const fn paper(self) -> &'static str {
        match self {
            Self::Light => "#ffffff",
            Self::Dark => "#171b20",
        }
    }

    pub(super) const fn ink(self) -> &'static str {
        match self {
            Self::Light => "#1b1f24",
            Self::Dark => "#e9ebee",
        }
    }

    pub(super) const fn muted(self) -> &'static str {
        match self {
            Self::Light => "#59626d",
            Self::Dark => "#a2abb6",
        }
    }

    pub(super) const fn grid(self) -> &'static str {
        match self {
            Self::Light => "#e6e8eb",
            Self::Dark => "#2b3138",
        }
    }

    pub(super) const fn axis(self) -> &'static str {
        match self {
            Self::Light => "#9aa2ac",
            Self::Dark => "#626b76",
        }
    }

    const fn diverging_stops(self) -> [[u8; 3]; 5] {
        match self {
            Self::Light => [
                [24, 74, 150],
                [120, 172, 218],
                [246, 246, 244],
                [239, 160, 118],
                [172, 52, 24],
            ],
            Self::Dark => [
                [140, 200, 255],
                [48, 108, 168],
                [32, 37, 43],
                [178, 84, 44],
                [255, 178, 140],
            ],
        }
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stroke {
    /// Without gaps.
    #[default]
    Solid,
    /// Long dashes.
    Dashed,
    /// Dots.
    Dotted,
    /// A dash and a dot by turns.
    DashDotted,
    /// A dash and two dots by turns.
    DashDotDotted,
}

impl Stroke {
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Solid => "",
            Self::Dashed => " apf-dashed",
            Self::Dotted => " apf-dotted",
            Self::DashDotted => " apf-dash-dotted",
            Self::DashDotDotted => " apf-dash-dot-dotted",
        }
    }
}

/// Steps of the diverging colour map; odd, so that one of them is the centre.
pub(super) const LEVELS: usize = 25;

/// The step for a deviation from the centre, given as a fraction of the largest one shown.
pub(super) fn level(fraction: f64) -> usize {
    let middle = (LEVELS - 1) as f64 / 2.0;
    (middle + fraction.clamp(-1.0, 1.0) * middle).round() as usize
}

/// The colour of a step: blue below the centre, the ground's own tone at it, red above.
pub(super) fn level_colour(level: usize, ground: Ground) -> String {
    let stops = ground.diverging_stops();
    let place = level.min(LEVELS - 1) as f64 / (LEVELS - 1) as f64 * (stops.len() - 1) as f64;
    let below = (place.floor() as usize).min(stops.len() - 2);
    let share = place - below as f64;
    let [red, green, blue] = std::array::from_fn(|channel| {
        let (from, to) = (
            f64::from(stops[below][channel]),
            f64::from(stops[below + 1][channel]),
        );
        (from + (to - from) * share).round() as u8
    });
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(hex: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(
                u8::from_str_radix(&hex[at..at + 2], 16).expect("two hexadecimal digits"),
            ) / 255.0;
            if value <= 0.040_45 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (a, b) = (luminance(one), luminance(other));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_colour_stands_out_from_its_ground() {
        for ground in [Ground::Light, Ground::Dark] {
            for colour in Colour::ALL {
                let ratio = contrast(colour.on(ground), ground.paper());
                assert!(ratio >= 3.0, "{colour:?} on {ground:?}: {ratio:.2}");
            }
            assert!(
                contrast(ground.muted(), ground.paper()) >= 4.5,
                "muted text on {ground:?}"
            );
        }
    }

    #[test]
    fn the_diverging_map_is_symmetric_about_its_centre() {
        assert_eq!(level(0.0), LEVELS / 2);
        assert_eq!(level(-1.0), 0);
        assert_eq!(level(1.0), LEVELS - 1);
        assert_eq!(level(7.0), LEVELS - 1);
        assert_eq!(level(0.5) + level(-0.5), LEVELS - 1);
        assert_eq!(level_colour(LEVELS / 2, Ground::Light), "#f6f6f4");
        assert_eq!(level_colour(LEVELS - 1, Ground::Light), "#ac3418");
    }
}
