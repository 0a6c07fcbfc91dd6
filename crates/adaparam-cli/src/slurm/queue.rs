//! What the scheduler says of the runs of a sweep.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use adaparam_runs::whole_file::write_whole;
use serde::Serialize;

use super::ask;

/// The jobs that were submitted for a sweep, and how they stand.
pub(crate) struct Queue {
    /// The newest job of each run.
    pub(crate) tasks: BTreeMap<usize, Task>,
    /// Why nothing is known, if Slurm does not answer.
    pub(crate) problem: Option<String>,
}

/// An element of a job array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Task {
    /// Its job.
    pub(crate) job: String,
    /// Where it is.
    pub(crate) state: TaskState,
    /// The node that it runs or ran on, or why it waits.
    pub(crate) detail: String,
}

/// Where an element is, as far as a sweep is concerned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TaskState {
    /// In the queue.
    Pending,
    /// At work.
    Running,
    /// Ended well.
    Completed,
    /// Anything else, in Slurm's word.
    Other(String),
}

impl TaskState {
    fn of(word: &str) -> Self {
        match word {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "SUSPENDED" => Self::Pending,
            "RUNNING" | "COMPLETING" | "CONFIGURING" => Self::Running,
            "COMPLETED" => Self::Completed,
            other => Self::Other(other.to_lowercase()),
        }
    }

    /// Whether the scheduler is not done with it.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

impl Task {
    /// `pending (Priority)`, `running on node2`, `failed on node1 (2:0)`.
    pub(crate) fn told(&self) -> String {
        match &self.state {
            TaskState::Pending => format!("pending ({})", self.detail),
            TaskState::Running => format!("running on {}", self.detail),
            TaskState::Completed => "completed".to_owned(),
            TaskState::Other(word) => format!("{word} {}", self.detail).trim_end().to_owned(),
        }
    }
}

/// The file that names the jobs of a sweep, one a line.
fn jobs_file(sweep: &Path) -> PathBuf {
    sweep.join("slurm").join("jobs.txt")
}

impl Queue {
    /// Notes that a job was submitted for a sweep.
    pub(crate) fn note(sweep: &Path, job: &str) -> anyhow::Result<()> {
        let path = jobs_file(sweep);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        Ok(write_whole(&path, format!("{before}{job}\n").as_bytes())?)
    }

    /// How the jobs of a sweep stand; nothing if none was ever submitted.
    pub(crate) fn of(sweep: &Path) -> Option<Self> {
        let jobs = std::fs::read_to_string(jobs_file(sweep)).ok()?;
        let mut queue = Self {
            tasks: BTreeMap::new(),
            problem: None,
        };
        for job in jobs.lines().filter(|job| !job.is_empty()) {
            match tasks_of(job) {
                Ok(tasks) => queue.tasks.extend(tasks),
                Err(problem) => queue.problem = Some(problem.to_string()),
            }
        }
        Some(queue)
    }
}

/// The tasks of a job. The controller forgets jobs some time after they have ended; an accounting database does not, where there
/// is one.
fn tasks_of(job: &str) -> anyhow::Result<Vec<(usize, Task)>> {
    let problem = match ask("scontrol", &["show", "job", "--oneliner", job]) {
        Ok(told) => return Ok(from_scontrol(job, &told)),
        Err(problem) => problem,
    };
    let arguments = SACCT.map(|word| if word == "JOB" { job } else { word });
    if let Ok(told) = ask("sacct", &arguments) {
        return Ok(from_sacct(job, &told));
    }
    let is_forgotten = problem.to_string().contains("Invalid job id");
    if is_forgotten {
        Ok(Vec::new())
    } else {
        Err(problem)
    }
}

const SACCT: [&str; 7] = [
    "--noheader",
    "--allocations",
    "--parsable2",
    "--jobs",
    "JOB",
    "--format",
    "JobID,State,NodeList,ExitCode",
];

/// Tasks of lines of `key=value`.
fn from_scontrol(job: &str, told: &str) -> Vec<(usize, Task)> {
    let mut tasks = Vec::new();
    for line in told.lines() {
        let value = |key: &str| {
            let mut words = line.split(' ');
            words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
        };
        let (Some(indices), Some(word)) = (value("ArrayTaskId"), value("JobState")) else {
            continue;
        };
        let state = TaskState::of(word);
        let node = value("NodeList").filter(|node| !node.is_empty() && *node != "(null)");
        let detail = match &state {
            TaskState::Pending => value("Reason").unwrap_or("None").to_owned(),
            TaskState::Running | TaskState::Completed => node.unwrap_or("a node").to_owned(),
            TaskState::Other(_) => ended(node, value("ExitCode")),
        };
        let task = Task {
            job: job.to_owned(),
            state,
            detail,
        };
        tasks.extend(
            numbers(indices)
                .into_iter()
                .map(|index| (index, task.clone())),
        );
    }
    tasks
}

/// Tasks of lines of `JobID|State|NodeList|ExitCode`.
fn from_sacct(job: &str, told: &str) -> Vec<(usize, Task)> {
    let lines = told.lines().filter_map(|line| {
        let mut fields = line.split('|');
        let (id, state) = (fields.next()?, fields.next()?);
        let (node, code) = (fields.next(), fields.next());
        let indices = id.split_once('_')?.1.trim_matches(['[', ']']);
        // `CANCELLED by 1000`.
        let state = TaskState::of(state.split(' ').next()?);
        let detail = match &state {
            TaskState::Pending => "None".to_owned(),
            TaskState::Running | TaskState::Completed => node.unwrap_or("a node").to_owned(),
            TaskState::Other(_) => ended(node, code),
        };
        let task = Task {
            job: job.to_owned(),
            state,
            detail,
        };
        let tasks = numbers(indices)
            .into_iter()
            .map(move |index| (index, task.clone()));
        Some(tasks.collect::<Vec<_>>())
    });
    lines.flatten().collect()
}

/// `on node1 (2:0)`: where and how something ended.
fn ended(node: Option<&str>, code: Option<&str>) -> String {
    let node = node.map(|node| format!("on {node}"));
    let code = code.map(|code| format!("({code})"));
    [node, code]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The numbers of `3`, `0-4`, `1,5-7%2`.
fn numbers(text: &str) -> Vec<usize> {
    let text = text.split('%').next().unwrap_or_default();
    let parts = text.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    parts.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controllers_lines_are_understood() {
        let told = "\
JobId=7 ArrayJobId=7 ArrayTaskId=4-5,8%2 JobName=a JobState=PENDING Reason=JobArrayTaskLimit NodeList= ExitCode=0:0
JobId=11 ArrayJobId=7 ArrayTaskId=3 JobName=a JobState=RUNNING Reason=None NodeList=node2 ExitCode=0:0
JobId=10 ArrayJobId=7 ArrayTaskId=2 JobName=a JobState=FAILED Reason=NonZeroExitCode NodeList=node1 ExitCode=2:0
JobId=9 ArrayJobId=7 ArrayTaskId=1 JobName=a JobState=COMPLETED Reason=None NodeList=node1 ExitCode=0:0
";
        let tasks: BTreeMap<usize, Task> = from_scontrol("7", told).into_iter().collect();
        let told: Vec<(usize, String)> = tasks
            .iter()
            .map(|(index, task)| (*index, task.told()))
            .collect();
        let expected = [
            (1, "completed"),
            (2, "failed on node1 (2:0)"),
            (3, "running on node2"),
            (4, "pending (JobArrayTaskLimit)"),
            (5, "pending (JobArrayTaskLimit)"),
            (8, "pending (JobArrayTaskLimit)"),
        ];
        assert_eq!(told, expected.map(|(index, text)| (index, text.to_owned())));
        assert!(tasks[&3].state.is_open() && !tasks[&2].state.is_open());
    }

    #[test]
    fn the_databases_lines_are_understood() {
        let told = "7_1|COMPLETED|node1|0:0\n7_2|CANCELLED by 0|node2|0:15\n7_[3-4]|PENDING||0:0\n";
        let told: Vec<(usize, String)> = from_sacct("7", told)
            .iter()
            .map(|(index, task)| (*index, task.told()))
            .collect();
        let expected = [
            (1, "completed"),
            (2, "cancelled on node2 (0:15)"),
            (3, "pending (None)"),
            (4, "pending (None)"),
        ];
        assert_eq!(told, expected.map(|(index, text)| (index, text.to_owned())));
    }

    #[test]
    fn jobs_are_noted_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("slurm")).unwrap();
        Queue::note(folder.path(), "7").unwrap();
        Queue::note(folder.path(), "9").unwrap();
        let noted = std::fs::read_to_string(jobs_file(folder.path())).unwrap();
        assert_eq!(noted, "7\n9\n");
    }
}
