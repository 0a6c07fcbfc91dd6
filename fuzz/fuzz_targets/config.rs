//! Configurations of language models, and changes of their keys.
#![no_main]

use std::sync::LazyLock;

use adaparam_lm::LanguageModelConfig;

static DEFAULT: LazyLock<LanguageModelConfig> = LazyLock::new(LanguageModelConfig::default);

libfuzzer_sys::fuzz_target!(|text: &str| {
    // One line is a change of a key, more are a configuration.
    if let Some((key, value)) = text.split_once('=')
        && !text.contains('\n')
    {
        if let Ok(config) = DEFAULT.with(key, value) {
            let _ = config.check();
        }
    } else if let Ok(config) = LanguageModelConfig::parse("x", text)
        && config.check().is_ok()
        && adaparam_fuzz::is_chosen(text)
    {
        let _ = config.model.parameter_count(10);
    }
});
