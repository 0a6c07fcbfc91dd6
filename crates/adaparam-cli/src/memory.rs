//! Whether a model can fit into this machine.

use adaparam_lm::{LanguageModelConfig, MemoryForecast};
use adaparam_report::number;
use anyhow::bail;

/// Refuses a model whose weights, gradients and moments alone are more than all memory of the machine.
pub(crate) fn refuse_what_cannot_fit(
    config: &LanguageModelConfig,
    vocabulary: usize,
) -> anyhow::Result<()> {
    let need = MemoryForecast::of(config, vocabulary).parameters as u64;
    let Some(there) = whole_memory().filter(|&there| need > there) else {
        return Ok(());
    };
    let megabytes = |bytes: u64| number::grouped(bytes / 1_000_000);
    bail!(
        "model: its {} parameters need {} MB to be trained, and this machine has {} MB: make model.hidden, \
         model.embedding or model.layers smaller",
        number::grouped(config.model.parameter_count(vocabulary) as u64),
        megabytes(need),
        megabytes(there)
    )
}

/// Memory and swap space in bytes, where the system tells.
fn whole_memory() -> Option<u64> {
    memory_in(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

/// The most memory that this process has had so far, in bytes, where the system tells.
pub(crate) fn peak_memory() -> Option<u64> {
    peak_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn peak_in(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(1024 * kilobytes)
}

fn memory_in(meminfo: &str) -> Option<u64> {
    let kilobytes = |name: &str| -> Option<u64> {
        let line = meminfo.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let swap = kilobytes("SwapTotal:").unwrap_or(0);
    Some(1024 * (kilobytes("MemTotal:")? + swap))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_swap_are_read() {
        let text = "MemTotal:        2000 kB\nMemFree: 5 kB\nSwapTotal:       1000 kB\n";
        assert_eq!(memory_in(text), Some(3000 * 1024));
        assert_eq!(memory_in("MemTotal: 7 kB\n"), Some(7 * 1024));
        assert_eq!(memory_in("nothing of the kind"), None);
    }

    #[test]
    fn the_peak_of_a_process_is_read() {
        assert_eq!(
            peak_in("Name:\ta\nVmHWM:\t    2000 kB\n"),
            Some(2000 * 1024)
        );
        assert_eq!(peak_in("nothing of the kind"), None);
    }

    #[test]
    fn a_model_larger_than_any_machine_is_refused() {
        let mut config = LanguageModelConfig::default();
        assert!(refuse_what_cannot_fit(&config, 10_000).is_ok());
        (config.model.hidden, config.model.layers) = (65_536, 64);
        if whole_memory().is_some() {
            let error = refuse_what_cannot_fit(&config, 10_000).unwrap_err();
            assert!(error.to_string().contains("make model.hidden"), "{error}");
        }
    }
}
