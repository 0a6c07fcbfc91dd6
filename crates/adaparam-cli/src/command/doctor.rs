//! `adaparam doctor`: what this machine has, what is missing, and how to get it.

use std::path::Path;

use adaparam_data::registry::Dataset;
use adaparam_data::verify::{FileState, verify};
use adaparam_lm::{Engine, Instructions, Precision};
use adaparam_report::number;
use clap::Args;
use serde::Serialize;

use super::Verdict;
use crate::data_folder::data_place;
use crate::device::how_to_build_in;
use crate::memory::{free_memory, whole_memory};
use crate::provenance::processor;
use crate::say::say;
use crate::sweeping::cores;
use crate::training::threads;

/// Say what this machine has for adaparam, what is missing and how to get it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam doctor
  adaparam doctor --json     the same for programs, and for a report of a fault

It reads and changes nothing but its own output, and ends with 0 whatever it finds.")]
pub(crate) struct Doctor {
    /// Folder with data sets [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR")]
    data: Option<std::path::PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// As it should be.
    Good,
    /// Not there, which matters only to those who want it.
    Absent,
    /// Something that should be mended.
    Wrong,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
struct Finding {
    what: String,
    state: State,
    found: String,
    /// How to get what is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Finding {
    fn good(what: &str, found: impl Into<String>) -> Self {
        Self {
            what: what.to_owned(),
            state: State::Good,
            found: found.into(),
            remedy: None,
        }
    }

    fn absent(what: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            state: State::Absent,
            remedy: Some(remedy.into()),
            ..Self::good(what, found)
        }
    }

    fn wrong(what: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            state: State::Wrong,
            ..Self::absent(what, found, remedy)
        }
    }
}

/// Findings of one kind.
#[derive(Debug, Clone, Serialize)]
struct Ward {
    name: &'static str,
    findings: Vec<Finding>,
}

impl Doctor {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let wards = [
            Ward {
                name: "program",
                findings: program(),
            },
            Ward {
                name: "processor",
                findings: of_processor(),
            },
            Ward {
                name: "memory",
                findings: of_memory(),
            },
            Ward {
                name: "devices",
                findings: devices(),
            },
            Ward {
                name: "data",
                findings: data(self.data.as_deref())?,
            },
        ];
        if self.json {
            say!("{}", serde_json::to_string_pretty(&wards)?);
            return Ok(Verdict::Done);
        }
        for ward in &wards {
            say!("{}", ward.name);
            for finding in &ward.findings {
                let mark = match finding.state {
                    State::Good => "✓",
                    State::Absent => "–",
                    State::Wrong => "✗",
                };
                say!("  {mark} {:<14} {}", finding.what, finding.found);
                if let Some(remedy) = &finding.remedy {
                    say!("    {:<14} {remedy}", "");
                }
            }
            say!("");
        }
        let all = wards.iter().flat_map(|ward| &ward.findings);
        let wrong = all.filter(|finding| finding.state == State::Wrong).count();
        match wrong {
            0 => say!("All is well. What is marked with – is there for those who want it."),
            some => say!("{} should be mended: see ✗.", number::count(some, "thing")),
        }
        Ok(Verdict::Done)
    }
}

fn program() -> Vec<Finding> {
    let version = format!(
        "{} of commit {}, Burn {}",
        env!("CARGO_PKG_VERSION"),
        env!("ADAPARAM_COMMIT"),
        env!("ADAPARAM_BURN")
    );
    let system = format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH);
    let build = if cfg!(debug_assertions) {
        Finding::absent(
            "build",
            "for development: slower, and with checks",
            "cargo install --path crates/adaparam-cli, or cargo run --release --",
        )
    } else {
        Finding::good("build", "release")
    };
    let mpi = if cfg!(feature = "mpi") {
        Finding::good("MPI", "built in: mpirun -n N adaparam train …")
    } else {
        Finding::absent(
            "MPI",
            "not built in",
            "for training by several processes: cargo install --path crates/adaparam-cli --features mpi",
        )
    };
    vec![
        Finding::good("version", version),
        Finding::good("system", system),
        build,
        mpi,
    ]
}

/// What processors of this kind can have that matters here: the name that people use, that of the system, and for what.
const FEATURES: &[(&str, &str, &str)] = &[
    ("AVX2", "avx2", "products in f32 and bf16"),
    ("FMA", "fma", "products in f32"),
    (
        "AVX-512",
        "avx512f",
        "products in f32, half as many instructions",
    ),
    (
        "AVX-512 BF16",
        "avx512_bf16",
        "products of bf16 in one instruction",
    ),
    (
        "AVX-512 VNNI",
        "avx512_vnni",
        "products of int8 in one instruction",
    ),
    ("AVX-VNNI", "avx_vnni", "the same in 256 bits"),
    ("AMX tiles", "amx_tile", "products of whole tiles"),
    ("AMX BF16", "amx_bf16", "the same of bf16"),
    ("AMX INT8", "amx_int8", "the same of int8"),
    ("NEON", "asimd", "products in f32"),
    ("BF16", "bf16", "products of bf16 in one instruction"),
    ("I8MM", "i8mm", "products of int8 in one instruction"),
];

fn of_processor() -> Vec<Finding> {
    let sets: Vec<&str> = Instructions::available()
        .into_iter()
        .map(Instructions::name)
        .collect();
    let engine = Engine::new(1);
    let paths = [Precision::F32, Precision::Bf16, Precision::Int8].map(|precision| {
        format!(
            "{precision} by {}",
            engine.in_precision(precision).path().name()
        )
    });
    let kernels = if sets.len() > 1 {
        Finding::good(
            "kernels",
            format!("{} ({})", sets.join(", "), paths.join(", ")),
        )
    } else {
        Finding::absent(
            "kernels",
            format!("{} alone ({})", sets.join(", "), paths.join(", ")),
            "computes everything, several times slower than a processor with AVX2 or NEON",
        )
    };
    let mut findings = vec![Finding::good("model", processor()), kernels];
    findings.extend(features());
    let used = threads(None);
    let told = match std::env::var("RAYON_NUM_THREADS") {
        Ok(value) => format!(
            "{used} of {} cores, RAYON_NUM_THREADS being {value}",
            cores()
        ),
        Err(_) => format!("{used}, one a core"),
    };
    findings.push(Finding::good("threads", told));
    findings
}

/// What the system tells of the processor's instructions; nothing where it does not.
fn features() -> Option<Finding> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let has = flags(&text)?;
    let (there, not): (Vec<_>, Vec<_>) = FEATURES
        .iter()
        .filter(|(_, flag, _)| is_of_this_kind(flag))
        .partition(|(_, flag, _)| has.contains(flag));
    let names = |of: &[&(&str, &str, &str)]| -> Vec<String> {
        of.iter().map(|(name, ..)| (*name).to_owned()).collect()
    };
    let found = match names(&there).join(", ") {
        none if none.is_empty() => "none of those that are used".to_owned(),
        some => some,
    };
    let without = not.iter().map(|(name, _, what)| format!("{name} ({what})"));
    let without: Vec<String> = without.collect();
    Some(if without.is_empty() {
        Finding::good("instructions", found)
    } else {
        let told = format!("this processor has no {}", without.join(", "));
        Finding {
            remedy: Some(told),
            ..Finding::good("instructions", found)
        }
    })
}

fn is_of_this_kind(flag: &str) -> bool {
    let of_arm = ["asimd", "bf16", "i8mm"].contains(&flag);
    of_arm == cfg!(target_arch = "aarch64")
}

/// The flags of the first processor.
fn flags(cpuinfo: &str) -> Option<Vec<&str>> {
    let line = cpuinfo.lines().find(|line| {
        let key = line.split(':').next().unwrap_or_default().trim();
        key == "flags" || key == "Features"
    })?;
    Some(line.split_once(':')?.1.split_whitespace().collect())
}

fn of_memory() -> Vec<Finding> {
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    let Some(whole) = whole_memory() else {
        return vec![Finding::absent(
            "memory",
            "this system does not tell",
            "models are not compared with it before they are trained",
        )];
    };
    let free = free_memory().map_or_else(String::new, |free| {
        format!(", {} of them free", gigabytes(free))
    });
    vec![Finding::good(
        "memory",
        format!("{} with swap space{free}", gigabytes(whole)),
    )]
}

fn devices() -> Vec<Finding> {
    vec![
        Finding::good("cpu", "--device cpu, the default: the kernels"),
        #[cfg(feature = "wgpu")]
        found_on("wgpu", burn::tensor::DeviceKind::DefaultDevice),
        #[cfg(not(feature = "wgpu"))]
        not_built_in("wgpu", "any graphics card with Vulkan, Metal or DirectX 12"),
        maybe_built_in(
            cfg!(feature = "metal"),
            "metal",
            "a graphics card of Apple's",
        ),
        maybe_built_in(
            cfg!(feature = "cuda"),
            "cuda",
            "a graphics card of NVIDIA's",
        ),
        maybe_built_in(cfg!(feature = "rocm"), "rocm", "a graphics card of AMD's"),
    ]
}

fn maybe_built_in(is_built_in: bool, feature: &'static str, what: &str) -> Finding {
    if is_built_in {
        Finding::good(feature, format!("built in: --device {feature}"))
    } else {
        not_built_in(feature, what)
    }
}

fn not_built_in(feature: &str, what: &str) -> Finding {
    Finding::absent(
        feature,
        "not built in",
        format!("for {what}: {}", how_to_build_in(feature)),
    )
}

/// Whether there is a device at all: a small sum on it.
#[cfg(feature = "wgpu")]
fn found_on(name: &str, kind: burn::tensor::DeviceKind) -> Finding {
    use burn::tensor::{Device, Tensor};
    let sum = std::panic::catch_unwind(|| {
        let device = Device::wgpu(kind);
        Tensor::<1>::ones([8], &device).sum().into_scalar::<f32>()
    });
    match sum {
        Ok(sum) if (sum - 8.0).abs() < 1e-6 => {
            Finding::good(name, "built in, and it computes: --device wgpu")
        }
        Ok(sum) => Finding::wrong(
            name,
            format!("built in, but eight ones are {sum} there"),
            "the driver is at fault: bring it up to date, or compute with --device cpu",
        ),
        Err(_) => Finding::wrong(
            name,
            "built in, but no device was found",
            "install a driver for Vulkan, Metal or DirectX 12, or compute with --device cpu",
        ),
    }
}

fn data(named: Option<&Path>) -> anyhow::Result<Vec<Finding>> {
    let folder = data_place(named)?;
    let place = if folder.is_dir() {
        Finding::good("folder", folder.display().to_string())
    } else if folder.exists() {
        let found = format!("{} is no folder", folder.display());
        return Ok(vec![Finding::wrong(
            "folder",
            found,
            "name a folder with --data or ADAPARAM_DATA",
        )]);
    } else if named.is_some() || std::env::var_os("ADAPARAM_DATA").is_some() {
        Finding::wrong(
            "folder",
            format!("{}: there is no such folder", folder.display()),
            "it is made by adaparam data fetch; --data and ADAPARAM_DATA name another",
        )
    } else {
        Finding::absent(
            "folder",
            format!("{} is not there yet", folder.display()),
            "it is made by adaparam data fetch; --data and ADAPARAM_DATA name another",
        )
    };
    let fetch = named.map_or_else(
        || "adaparam data fetch".to_owned(),
        |named| format!("adaparam data fetch --data {}", named.display()),
    );
    let sets = Dataset::ALL
        .into_iter()
        .map(|set| of_set(set, &folder, &fetch));
    Ok(std::iter::once(place).chain(sets).collect())
}

/// How a set is; `fetch` is the command that gets it, up to its name.
fn of_set(set: Dataset, folder: &Path, fetch: &str) -> Finding {
    let name = set.name();
    if set.is_embedded() {
        return Finding::good(name, "inside the program");
    }
    let fetch = format!("{fetch} {name}");
    let own = set.folder(folder);
    let Ok(reports) = verify(&set.files(), &own) else {
        return Finding::wrong(name, "its files cannot be read", fetch);
    };
    let missing = reports.iter().filter(|of| of.state == FileState::Missing);
    match (
        missing.count(),
        reports.iter().find(|of| of.state != FileState::Ok),
    ) {
        (_, None) => Finding::good(name, "here, and every file is whole"),
        (missing, _) if missing == reports.len() => {
            Finding::absent(name, "not here", format!("{fetch} ({})", set.licence()))
        }
        (_, Some(first)) => Finding::wrong(
            name,
            format!(
                "{} is missing or not what it should be",
                first.path.display()
            ),
            fetch,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_the_system() {
        let intel = "processor\t: 0\nflags\t\t: fpu avx2 amx_bf16\nprocessor\t: 1\nflags\t: fpu\n";
        assert_eq!(flags(intel), Some(vec!["fpu", "avx2", "amx_bf16"]));
        let arm = "processor\t: 0\nFeatures\t: fp asimd bf16\n";
        assert_eq!(flags(arm), Some(vec!["fp", "asimd", "bf16"]));
        assert_eq!(flags("model name : x\n"), None);
    }

    #[test]
    fn a_set_that_is_damaged_is_told_from_one_that_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            of_set(Dataset::Digits, folder.path(), "fetch").state,
            State::Good
        );
        let absent = of_set(Dataset::Ptb, folder.path(), "fetch");
        assert_eq!(absent.state, State::Absent);
        assert!(absent.remedy.unwrap().starts_with("fetch ptb"));
        // The remedy is for the folder that was looked into.
        let told = data(Some(folder.path())).unwrap();
        let remedies: Vec<&String> = told.iter().filter_map(|of| of.remedy.as_ref()).collect();
        let named = format!("--data {} mnist", folder.path().display());
        assert!(remedies.iter().any(|remedy| remedy.contains(&named)));
        let own = Dataset::Ptb.folder(folder.path());
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join(&Dataset::Ptb.files()[0].name), "not it").unwrap();
        assert_eq!(
            of_set(Dataset::Ptb, folder.path(), "fetch").state,
            State::Wrong
        );
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let told = data(Some(&file)).unwrap();
        assert_eq!((told.len(), told[0].state), (1, State::Wrong));
        // A folder that somebody names is one that they expect to be there.
        let told = data(Some(&folder.path().join("nope"))).unwrap();
        assert_eq!(told[0].state, State::Wrong);
        assert!(told[0].found.ends_with("there is no such folder"));
    }
}
