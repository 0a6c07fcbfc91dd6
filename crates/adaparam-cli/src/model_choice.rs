//! The choice of a configuration: a preset by name or a file, with keys changed.

use std::path::Path;

use adaparam_lm::{Cells, DataSpec, Family, LanguageModelConfig, nearest, preset, presets};
use adaparam_runs::{RunError, ordinary_file};
use anyhow::{Context, bail};

/// The configuration of a preset's name or a TOML file.
pub(crate) fn configuration(name: &str) -> anyhow::Result<LanguageModelConfig> {
    if let Some(preset) = preset(name) {
        return Ok(preset.config);
    }
    let path = Path::new(name);
    if !path.exists() {
        bail!("{}", no_such_model(name));
    }
    let text = ordinary_file::read_to_string(path)
        .map_err(RunError::file(path, "cannot read this file"))?;
    Ok(LanguageModelConfig::parse(
        &path.display().to_string(),
        &text,
    )?)
}

/// What to say of a name that is neither a preset's nor a file's.
fn no_such_model(name: &str) -> String {
    if name.contains(['/', '\\'])
        || Path::new(name)
            .extension()
            .is_some_and(|extension| extension == "toml" || extension == "safetensors")
    {
        return format!("{name}: there is no such file or folder");
    }
    let presets = presets();
    let cell = nearest(name, Cells::kinds().iter().map(|kind| kind.name));
    let of_that_cell = || {
        let cell = cell?;
        let mut presets = presets.iter();
        presets.find(|preset| preset.config.model.cell.settings().kind() == cell)
    };
    let near = nearest(name, presets.iter().map(|preset| preset.name));
    let near = near.or_else(|| Some(of_that_cell()?.name));
    let hint = match (near, cell) {
        (Some(near), _) => format!("did you mean `{near}`? (`adaparam show` lists all presets)"),
        (None, Some(cell)) => format!(
            "for a model with that cell: `adaparam train quick --set model.cell.kind={cell}`"
        ),
        (None, None) => {
            let names: Vec<&str> = presets.iter().map(|preset| preset.name).collect();
            format!(
                "presets are {} (`adaparam show` tells what each is)",
                names.join(", ")
            )
        }
    };
    format!("{name}: neither a file nor a preset; {hint}")
}

/// `key=value` of `--set`.
pub(crate) fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("must be KEY=VALUE, such as train.epochs=2".to_owned()),
    }
}

/// The same configuration with keys changed.
pub(crate) fn with_changes(
    mut config: LanguageModelConfig,
    changes: &[(String, String)],
) -> anyhow::Result<LanguageModelConfig> {
    let is_set = |key: &str| changes.iter().any(|(set, _)| set == key);
    if is_set("train.cut_after") && is_set("train.cut_at") {
        bail!("--set: train.cut_after and train.cut_at: give epochs or shares of them, not both");
    }
    for (key, value) in changes {
        config = config
            .with(key, value)
            .context("--set (`adaparam show --keys` lists all keys)")?;
    }
    Ok(config)
}

/// Whether a file that a configuration names as its text is not there.
pub(crate) fn is_text_gone(data: &DataSpec) -> bool {
    let mut files = [&data.train, &data.valid, &data.test].into_iter().flatten();
    files.any(|file| !file.exists())
}

/// Whether changes name the text to train on.
pub(crate) fn names_a_text(changes: &[(String, String)]) -> bool {
    let mut keys = changes.iter().map(|(key, _)| key.as_str());
    keys.any(|key| key == "data.train" || key == "data.set")
}

/// Refuses a text that is named by a flag and by a key of the configuration: only one of the two would be read.
pub(crate) fn refuse_two_names(
    texts: &[(&str, &str, Option<&Path>)],
    changes: &[(String, String)],
) -> anyhow::Result<()> {
    for (flag, key, file) in texts {
        let change = changes.iter().find(|(changed, _)| changed == key);
        if let (Some(file), Some((_, value))) = (file, change) {
            bail!(
                "{flag} {} and --set {key}={value}: both name the text: leave one of them out",
                file.display()
            );
        }
    }
    Ok(())
}

/// The configuration in a file at `path` that anybody may have written: it does not choose which files are read here, so
/// whoever types the command must have named the text.
pub(crate) fn without_files_of_its_maker(
    path: &Path,
    mut config: LanguageModelConfig,
    is_named: bool,
) -> anyhow::Result<LanguageModelConfig> {
    match config.data.take_paths() {
        Some(text) if !is_named => bail!(
            "{}: its text ({}) is not in the file; name it with `--text FILE`",
            path.display(),
            text.display()
        ),
        _ => Ok(config),
    }
}

/// Makes paths hold wherever the run is gone on with. Paths stand in files of the run, which are text.
pub(crate) fn with_absolute_paths(config: &mut LanguageModelConfig) -> anyhow::Result<()> {
    let data = &mut config.data;
    let paths = [
        ("data.train", &mut data.train),
        ("data.valid", &mut data.valid),
        ("data.test", &mut data.test),
    ];
    for (key, path) in paths {
        if let Some(path) = path {
            *path = std::path::absolute(&*path)?;
            if path.to_str().is_none() {
                bail!(
                    "{key} = {}: must be UTF-8, because it is written into files of text: rename the file or its folder",
                    path.display()
                );
            }
        }
    }
    Ok(())
}

/// Changes whose paths hold wherever the runs are started.
pub(crate) fn absolute_paths(
    changes: Vec<(String, String)>,
) -> anyhow::Result<Vec<(String, String)>> {
    let is_path = |key: &str| ["data.train", "data.valid", "data.test"].contains(&key);
    changes
        .into_iter()
        .map(|(key, value)| {
            let value = if is_path(&key) {
                std::path::absolute(value.trim_matches('"'))?
                    .display()
                    .to_string()
            } else {
                value
            };
            Ok((key, value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_preset_is_answered_with_what_was_meant() {
        for (name, expected) in [
            ("aLSTM", "did you mean `quick`?"),
            ("lstm", "did you mean `quick-lstm`?"),
            ("awd", "did you mean `ptb-awd`?"),
            ("zaremba", "did you mean `ptb-zaremba-small`?"),
            ("tg-sc", "did you mean `ptb-melis-24m`?"),
            ("mogrifier", "did you mean `ptb-mogrifier-24m`?"),
            ("slstm", "--set model.cell.kind=slstm"),
        ] {
            let told = no_such_model(name);
            assert!(told.contains(expected), "{told}");
            assert!(!told.contains("presets are"), "{told}");
        }
        assert!(no_such_model("transformer").contains("presets are quick, "));
        for path in ["nothere/", "configs/a", "a.toml", "a.safetensors"] {
            let told = no_such_model(path);
            assert!(told.ends_with("there is no such file or folder"), "{told}");
        }
    }
}
