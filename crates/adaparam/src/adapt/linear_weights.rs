use burn::module::{Module, ModuleVisitor, Param, ParamGroup, ParamGroupError, ParamId};
use burn::tensor::Tensor;
use thiserror::Error;

use crate::settings::nearest;

/// Why there is no group of weights.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoSuchLinear {
    /// The pattern is no regular expression.
    #[error("{pattern}: this is no regular expression: {problem}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
    /// No `Linear` has such a name.
    #[error("{pattern}: no Linear of this model has a weight of such a name: {hint}")]
    Nothing {
        /// The pattern.
        pattern: String,
        /// What there is.
        hint: String,
    },
}

/// The weights of every Burn `Linear` of a model whose path matches a regular expression, such as
/// `encoder\.layers\.\d+\.(query|value)`; an empty one matches all. Embeddings and other matrices are never among them.
///
/// # Errors
///
/// If the pattern is no regular expression, or matches nothing.
pub fn linear_weights<M: Module>(model: &M, pattern: &str) -> Result<ParamGroup, NoSuchLinear> {
    let matcher = ParamGroup::from_regex(pattern).map_err(|problem| NoSuchLinear::Pattern {
        pattern: pattern.to_owned(),
        problem: cause(&problem),
    })?;
    let mut finder = Finder::default();
    model.visit(&mut finder);
    let id = ParamId::new(); // a pattern looks at paths alone
    let matching: Vec<String> = finder
        .found
        .iter()
        .filter(|path| matcher.matches(&id, Some(path)))
        .cloned()
        .collect();
    if matching.is_empty() {
        let paths = finder.found.iter().map(String::as_str);
        let hint = match nearest(pattern, paths) {
            Some(path) => format!("did you mean `{path}`?"),
            None if finder.found.is_empty() => "it has no Linear".to_owned(),
            None => format!("it has {}", finder.found.join(", ")),
        };
        return Err(NoSuchLinear::Nothing {
            pattern: pattern.to_owned(),
            hint,
        });
    }
    Ok(ParamGroup::from_paths(matching))
}

/// What is wrong with a pattern, in one line: the last one says it, those before show where.
fn cause(problem: &ParamGroupError) -> String {
    let ParamGroupError::InvalidPatternError(text) = problem;
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

/// Looks for `Linear`s, which are known by the name of their type and of their field.
#[derive(Default)]
struct Finder {
    path: Vec<(String, String)>,
    found: Vec<String>,
}

impl ModuleVisitor for Finder {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.push((name.to_owned(), container_type.to_owned()));
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, _param: &Param<Tensor<D>>) {
        let is_weight = matches!(
            self.path.last(),
            Some((field, container)) if field == "weight" && container == "Struct:Linear"
        );
        if is_weight && D == 2 {
            let names: Vec<&str> = self.path.iter().map(|(name, _)| name.as_str()).collect();
            self.found.push(names.join("."));
        }
    }
}
