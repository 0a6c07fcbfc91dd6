//! The script of a job array.

use std::fmt::Write as _;
use std::path::Path;
use std::str::FromStr;

use crate::training::shell_word;

/// Seconds before the time limit at which runs are told to save.
const SAVE_BEFORE: u64 = 120;

/// A time limit as Slurm takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimeLimit {
    text: String,
    seconds: u64,
}

impl FromStr for TimeLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rule = || {
            "must be minutes, MM:SS, HH:MM:SS, D-HH or D-HH:MM, as Slurm takes them: 90, 4:00:00, 1-12".to_owned()
        };
        let numbers = |text: &str| -> Option<Vec<u64>> {
            text.split(':').map(|part| part.parse().ok()).collect()
        };
        let (days, rest) = match text.split_once('-') {
            Some((days, rest)) => (Some(days.parse::<u64>().map_err(|_| rule())?), rest),
            None => (None, text),
        };
        let rest = numbers(rest).ok_or_else(rule)?;
        let parts = match (days, rest.as_slice()) {
            (None, [minutes]) => Some([0, 0, *minutes, 0]),
            (None, [minutes, seconds]) => Some([0, 0, *minutes, *seconds]),
            (None, [hours, minutes, seconds]) => Some([0, *hours, *minutes, *seconds]),
            (Some(days), [hours, rest @ ..]) if rest.len() <= 2 => {
                let part = |index: usize| rest.get(index).copied().unwrap_or(0);
                Some([days, *hours, part(0), part(1)])
            }
            _ => None,
        };
        let units = [86_400, 3_600, 60, 1_u64];
        let seconds = parts.and_then(|parts| {
            let mut pairs = parts.into_iter().zip(units);
            pairs.try_fold(0_u64, |sum, (part, unit)| {
                sum.checked_add(part.checked_mul(unit)?)
            })
        });
        let seconds = seconds.filter(|&seconds| seconds >= 60).ok_or_else(rule)?;
        Ok(Self {
            text: text.to_owned(),
            seconds,
        })
    }
}

/// What a job array is to be.
pub(crate) struct ArrayScript<'a> {
    /// This program.
    pub(crate) program: &'a Path,
    /// The sweep's folder, from the root.
    pub(crate) sweep: &'a Path,
    /// The folder with data sets, if it was named.
    pub(crate) data: Option<&'a Path>,
    /// The runs, by their numbers, ascending.
    pub(crate) runs: &'a [usize],
    pub(crate) partition: Option<&'a str>,
    pub(crate) time: Option<&'a TimeLimit>,
    pub(crate) threads: u16,
    /// Runs at a time.
    pub(crate) limit: Option<u32>,
}

impl ArrayScript<'_> {
    /// The script.
    pub(crate) fn text(&self) -> String {
        let name = self.sweep.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "-_.".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let limit = self
            .limit
            .map_or_else(String::new, |limit| format!("%{limit}"));
        // A quarter of a short time, so that something is left for training.
        let save_before = self
            .time
            .map_or(SAVE_BEFORE, |time| SAVE_BEFORE.min(time.seconds / 4));
        let output = self.sweep.join("slurm").join("run-%a.txt");
        let mut text = String::from("#!/bin/bash\n");
        let mut option = |key: &str, value: &str| {
            let _ = writeln!(text, "#SBATCH --{key}={value}");
        };
        option("job-name", &format!("adaparam-{name}"));
        option("array", &format!("{}{limit}", ranges(self.runs)));
        if let Some(partition) = self.partition {
            option("partition", partition);
        }
        if let Some(time) = self.time {
            option("time", &time.text);
        }
        option("nodes", "1");
        option("ntasks", "1");
        option("cpus-per-task", &self.threads.to_string());
        option("signal", &format!("B:TERM@{save_before}"));
        option("open-mode", "append");
        option("output", &quoted(&output));
        text.push_str("#SBATCH --requeue\n");
        let data = self
            .data
            .map_or_else(String::new, |data| format!(" --data {}", shell_word(data)));
        let _ = write!(
            text,
            r#"
# Written by `adaparam sweep submit`. Each element of the array runs one run of the sweep. It goes on from its newest
# checkpoint, is left alone if it has ended, and saves when Slurm says that its time is up. Then it is put back into
# the queue.

sweep={sweep}
if [ ! -f "$sweep/manifest.json" ]; then
    echo "error: $sweep: $(hostname) does not see this folder: put the sweep on a file system that all nodes share" >&2
    exit 2
fi

{program} sweep run "$sweep" --index "$SLURM_ARRAY_TASK_ID" --threads {threads}{data} &
run=$!
asked=
trap 'asked=yes; kill -TERM "$run" 2>/dev/null' TERM
wait "$run"
code=$?
# A signal ends `wait` before the run has ended.
while kill -0 "$run" 2>/dev/null; do
    wait "$run"
    code=$?
done

# 130: stopped on request, with everything saved. A job that was cancelled is not running any more, and stays cancelled.
if [ -n "$asked" ] && [ "$code" = 130 ]; then
    state=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T 2>/dev/null)
    if [ "$state" = RUNNING ]; then
        scontrol requeue "$SLURM_JOB_ID" && sleep 60
    fi
fi
exit "$code"
"#,
            sweep = shell_word(self.sweep),
            program = shell_word(self.program),
            threads = self.threads,
        );
        text
    }
}

/// A path in a line of `#SBATCH`.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    if text.contains(char::is_whitespace) {
        format!("\"{text}\"")
    } else {
        text
    }
}

/// `0-3,5,7-8`.
fn ranges(runs: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &run in runs {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == run => *last = run,
            _ => parts.push((run, run)),
        }
    }
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })
        .collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(time: Option<&str>, sweep: &str) -> String {
        let time: Option<TimeLimit> = time.map(|time| time.parse().unwrap());
        ArrayScript {
            program: "/opt/my programs/adaparam".as_ref(),
            sweep: sweep.as_ref(),
            data: Some("/data".as_ref()),
            runs: &[0, 1, 2, 5, 7, 8],
            partition: Some("short"),
            time: time.as_ref(),
            threads: 4,
            limit: Some(3),
        }
        .text()
    }

    #[test]
    fn a_script_says_what_was_asked_for() {
        let text = script(Some("4:00:00"), "/data/my sweep");
        for line in [
            "#SBATCH --job-name=adaparam-my_sweep",
            "#SBATCH --array=0-2,5,7-8%3",
            "#SBATCH --partition=short",
            "#SBATCH --time=4:00:00",
            "#SBATCH --cpus-per-task=4",
            "#SBATCH --signal=B:TERM@120",
            "#SBATCH --open-mode=append",
            "#SBATCH --requeue",
            "#SBATCH --output=\"/data/my sweep/slurm/run-%a.txt\"",
            "sweep='/data/my sweep'",
            "'/opt/my programs/adaparam' sweep run \"$sweep\" --index \"$SLURM_ARRAY_TASK_ID\" --threads 4 --data /data &",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} in\n{text}");
        }
        // Lines for Slurm end where the program begins.
        let last_option = text.rfind("#SBATCH").unwrap();
        assert!(last_option < text.find("sweep run").unwrap());
    }

    #[test]
    fn a_short_time_leaves_some_for_training() {
        assert!(script(Some("2"), "/s").contains("--signal=B:TERM@30\n"));
        assert!(script(None, "/s").contains("--signal=B:TERM@120\n"));
    }

    #[test]
    fn a_time_is_one_that_slurm_takes() {
        let seconds = |text: &str| text.parse::<TimeLimit>().map(|time| time.seconds);
        for (text, expected) in [
            ("90", 5400),
            ("1:30", 90),
            ("4:00:00", 14_400),
            ("1-12", 129_600),
            ("2-0:30", 174_600),
        ] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "soon",
            "0",
            "1:2:3:4",
            "-5",
            "1-",
            "4h",
            "99999999999999999999",
            "1:18446744073709551615:0",
            "1-0:0:18446744073709551615",
        ] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
