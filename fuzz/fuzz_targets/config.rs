//! Configurations of language models, and changes of their keys.
#![no_main]

use adaparam_lm::LanguageModelConfig;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(config) = LanguageModelConfig::parse("x", text)
        && config.check().is_ok()
    {
        let _ = config.model.parameter_count(10);
    }
    if let Some((key, value)) = text.split_once('=')
        && let Ok(config) = LanguageModelConfig::default().with(key, value)
    {
        let _ = config.check();
    }
});
