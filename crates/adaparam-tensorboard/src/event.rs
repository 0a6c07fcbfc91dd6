//! What an event file holds.
//!
//! Of `tensorflow.Event` the fields `wall_time` (1), `step` (2), `file_version` (3), `summary` (5), `session_log` (7) and
//! `source_metadata` (10); of `Summary` its values (1), and of each `tag` (1) and `simple_value` (2).

use crate::message::{Field, Message, fields};

/// What readers take for the second version of the format, where a start makes them forget later steps.
const VERSION: &str = "brain.Event:2";
/// `SessionLog.SessionStatus.START`.
const START: u64 = 1;

/// A number under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalar {
    /// The name; what stands before its first `/` is the group in which it is shown.
    pub tag: String,
    /// The number; the format has single precision.
    pub value: f32,
}

/// A record of an event file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Event {
    /// Seconds since 1970.
    pub wall_time: f64,
    /// The step.
    pub step: u64,
    /// The numbers of this step.
    pub scalars: Vec<Scalar>,
    /// What the file belongs to, in its first record.
    pub series: Option<String>,
    /// Whether a process begins here, so that readers forget what they have seen from this step on.
    pub begins: bool,
}

impl Event {
    /// The first event of a file.
    pub(crate) fn version(wall_time: f64, series: &str) -> Self {
        Self {
            wall_time,
            series: Some(series.to_owned()),
            ..Self::default()
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut message = Message::default().double(1, self.wall_time);
        if self.step > 0 {
            message = message.whole(2, self.step);
        }
        if let Some(series) = &self.series {
            let source = Message::default().bytes(1, series.as_bytes());
            message = message.bytes(3, VERSION.as_bytes()).message(10, source);
        }
        if !self.scalars.is_empty() {
            let values = self.scalars.iter().fold(Message::default(), |all, scalar| {
                let value = Message::default().bytes(1, scalar.tag.as_bytes());
                all.message(1, value.float(2, scalar.value))
            });
            message = message.message(5, values);
        }
        if self.begins {
            message = message.message(7, Message::default().whole(1, START));
        }
        message.into_bytes()
    }

    /// Nothing if this is no event. Fields and kinds of values that are not ours are passed over.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let mut event = Self::default();
        for field in fields(bytes)? {
            match field {
                (1, Field::Fixed64(time)) => event.wall_time = f64::from_le_bytes(time),
                (2, Field::Varint(step)) => event.step = step,
                (5, Field::Bytes(summary)) => {
                    for value in fields(summary)? {
                        if let (1, Field::Bytes(value)) = value {
                            event.scalars.extend(scalar(value)?);
                        }
                    }
                }
                (7, Field::Bytes(log)) => {
                    event.begins = fields(log)?.contains(&(1, Field::Varint(START)));
                }
                (10, Field::Bytes(source)) => {
                    event.series = fields(source)?.into_iter().find_map(text_of_first);
                }
                _ => {}
            }
        }
        Some(event)
    }
}

fn text_of_first((number, field): (u64, Field<'_>)) -> Option<String> {
    match (number, field) {
        (1, Field::Bytes(text)) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}

/// A value of a summary, if it is a number; the outer option is whether it is a message at all.
#[expect(
    clippy::option_option,
    reason = "no message, and no number, are two things"
)]
fn scalar(bytes: &[u8]) -> Option<Option<Scalar>> {
    let fields = fields(bytes)?;
    let tag = fields.iter().copied().find_map(text_of_first);
    let value = fields.iter().find_map(|field| match field {
        (2, Field::Fixed32(value)) => Some(f32::from_le_bytes(*value)),
        _ => None,
    });
    Some(tag.zip(value).map(|(tag, value)| Scalar { tag, value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let first = Event::version(12.5, "a run");
        assert_eq!(Event::of_bytes(&first.to_bytes()), Some(first));
        let begins = Event {
            step: 7,
            begins: true,
            ..Event::default()
        };
        assert_eq!(Event::of_bytes(&begins.to_bytes()), Some(begins));
        let event = Event {
            wall_time: 1.7e9,
            step: u64::MAX >> 1,
            scalars: ["a/b", "ä"]
                .map(|tag| Scalar {
                    tag: tag.to_owned(),
                    value: 0.1,
                })
                .to_vec(),
            ..Event::default()
        };
        assert_eq!(Event::of_bytes(&event.to_bytes()), Some(event));
    }

    #[test]
    fn the_bytes_are_those_of_the_schema() {
        let event = Event {
            wall_time: 1.0,
            step: 2,
            scalars: vec![Scalar {
                tag: "l".to_owned(),
                value: 0.5,
            }],
            ..Event::default()
        };
        let expected = [
            &[0x09][..],
            &1.0_f64.to_le_bytes(),
            &[0x10, 2],
            &[0x2a, 10, 0x0a, 8, 0x0a, 1, b'l', 0x15, 0, 0, 0, 0x3f],
        ];
        assert_eq!(event.to_bytes(), expected.concat());
    }

    #[test]
    fn values_of_other_kinds_are_passed_over() {
        let picture = Message::default().bytes(1, b"picture").bytes(4, b"...");
        let summary = Message::default().message(1, picture);
        let event = Message::default().message(5, summary).into_bytes();
        assert_eq!(Event::of_bytes(&event), Some(Event::default()));
        assert_eq!(Event::of_bytes(&[0x0a, 200]), None);
    }
}
