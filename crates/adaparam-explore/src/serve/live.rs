//! What the server answers: texts explained as they are typed, text that goes on, curves of runs under way.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use adaparam_lm::{Generator, Machine, Sampling};
use serde::Deserialize;
use serde_json::{Value, json};

use super::http::{self, Refusal, Request};
use crate::curves::Curves;
use crate::explorer::{Explorer, shown};
use crate::page;
use crate::rows::Writing;
use crate::trace::TypedText;

/// Words of a text that are read.
const MOST_WORDS: usize = 200;
/// Words that are drawn at a time.
const MOST_DRAWN: usize = 200;
/// Between two looks at the logs of runs.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A sign of life, so that a connection to nobody is found out.
const ALIVE_EVERY: Duration = Duration::from_secs(10);

/// A model that can be asked.
pub struct Looked<'a> {
    explorer: Mutex<Explorer<'a>>,
    machine: &'a Machine,
}

impl<'a> Looked<'a> {
    /// A model and what computes it.
    pub fn new(explorer: Explorer<'a>, machine: &'a Machine) -> Self {
        Self {
            explorer: Mutex::new(explorer),
            machine,
        }
    }
}

/// All that a server shows.
pub struct Live<'a> {
    models: Vec<Looked<'a>>,
    curves: Mutex<Curves>,
    page: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedAlike {
    text: String,
    run: usize,
    layer: usize,
    from: usize,
    to: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedToGoOn {
    text: String,
    run: usize,
    words: usize,
    temperature: f64,
    top_k: usize,
    seed: u64,
}

impl<'a> Live<'a> {
    /// A page on these models and runs, that begins with a text.
    pub fn new(title: &str, models: Vec<Looked<'a>>, mut curves: Curves, text: &str) -> Self {
        let told = models.iter().map(|model| {
            let explorer = locked(&model.explorer);
            let unit = explorer.model().vocabulary().tokens().unit();
            json!({"name": explorer.model().name, "unit": unit})
        });
        curves.look();
        let data = json!({
            "format": 1, "live": true, "models": told.collect::<Vec<_>>(), "text": text,
            "curves": curves.to_json(), "most_drawn": MOST_DRAWN,
        });
        Self {
            page: page::live(title, !models.is_empty(), &data),
            models,
            curves: Mutex::new(curves),
        }
    }

    pub(crate) fn answer(
        &self,
        request: &Request,
        path: &str,
        out: &mut TcpStream,
        stop: &AtomicBool,
    ) -> std::io::Result<()> {
        let answered = match (request.is_post, path) {
            (false, "") => return http::answer(out, 200, "text/html", self.page.as_bytes()),
            (false, "curves") => return self.stream_curves(out, stop),
            (true, "explain") => self.explain(&request.body),
            (true, "alike") => self.alike(&request.body),
            (true, "generate") => match self.generator(&request.body) {
                Ok(asked) => return self.stream_text(&asked, out, stop),
                Err(refusal) => Err(refusal),
            },
            _ => Err(Refusal::new(404, "there is nothing of this name")),
        };
        match answered {
            Ok(value) => {
                let body = value.to_string();
                http::answer(out, 200, "application/json", body.as_bytes())
            }
            Err(refusal) => http::refuse(out, refusal),
        }
    }

    fn explain(&self, body: &[u8]) -> Result<Value, Refusal> {
        let asked: Asked = parse(body)?;
        let runs = self.models.iter().map(|model| {
            let mut explorer = locked(&model.explorer);
            let explained = explorer.explain(&asked.text, MOST_WORDS);
            explorer.to_json(&explained, Writing::Page)
        });
        Ok(json!({"runs": runs.collect::<Vec<_>>()}))
    }

    fn alike(&self, body: &[u8]) -> Result<Value, Refusal> {
        let asked: AskedAlike = parse(body)?;
        let mut explorer = locked(&self.model(asked.run)?.explorer);
        let explained = explorer.explain(&asked.text, MOST_WORDS);
        let words = explained.trace.words.len();
        if asked.from > asked.to || asked.to >= words {
            return Err(Refusal::new(400, "the selection is not within the text"));
        }
        let found = explorer.alike(&explained, asked.layer, asked.from..asked.to + 1);
        Ok(json!(found))
    }

    fn model(&self, run: usize) -> Result<&Looked<'a>, Refusal> {
        let unknown = Refusal::new(400, "there is no such run");
        self.models.get(run).ok_or(unknown)
    }

    fn generator(&self, body: &[u8]) -> Result<AskedToGoOn, Refusal> {
        let asked: AskedToGoOn = parse(body)?;
        self.model(asked.run)?;
        if !(0.0..=10.0).contains(&asked.temperature) {
            return Err(Refusal::new(400, "the temperature must be from 0 to 10"));
        }
        if asked.words == 0 || asked.words > MOST_DRAWN {
            return Err(Refusal::new(400, "so many words are not drawn at a time"));
        }
        Ok(asked)
    }

    /// Sends the words that follow a text, each as it is drawn.
    fn stream_text(
        &self,
        asked: &AskedToGoOn,
        out: &mut TcpStream,
        stop: &AtomicBool,
    ) -> std::io::Result<()> {
        let looked = &self.models[asked.run];
        let model = locked(&looked.explorer).model();
        let (vocabulary, spec) = (model.vocabulary(), &model.opened.snapshot.config.model);
        let typed = TypedText::new(vocabulary, &asked.text, MOST_WORDS);
        let sampling = Sampling {
            temperature: asked.temperature,
            top_k: asked.top_k,
            seed: asked.seed,
            ..Sampling::default()
        };
        http::begin_events(out)?;
        let mut generator = {
            let _turn = locked(&looked.explorer);
            Generator::new(looked.machine, spec, model.weights(), sampling)
        };
        // Each word is a turn of its own, so that typing does not wait for the end of a text.
        let mut next = |word: u32| {
            let _turn = locked(&looked.explorer);
            generator.next(word, vocabulary.unk())
        };
        let mut before = vocabulary.line_end();
        let mut word = next(before);
        for &id in &typed.ids {
            before = id;
            word = next(id);
        }
        for _ in 0..asked.words {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let begins = before == vocabulary.line_end() && typed.ids.is_empty();
            let spelling = vocabulary.spelling(word, (!begins).then_some(before));
            let text = String::from_utf8_lossy(&spelling);
            http::event(out, &json!({"text": text, "word": shown(vocabulary, word)}))?;
            before = word;
            word = next(word);
        }
        http::event(out, &json!({"end": true}))
    }

    /// Sends the curves of runs whenever they have grown.
    fn stream_curves(&self, out: &mut TcpStream, stop: &AtomicBool) -> std::io::Result<()> {
        http::begin_events(out)?;
        let (mut seen, mut alive) = (None, Instant::now());
        while !stop.load(Ordering::Relaxed) {
            let (version, told) = {
                let mut curves = locked(&self.curves);
                let version = curves.look();
                (version, (seen != Some(version)).then(|| curves.to_json()))
            };
            if let Some(told) = told {
                http::event(out, &told)?;
                seen = Some(version);
                alive = Instant::now();
            } else if alive.elapsed() >= ALIVE_EVERY {
                out.write_all(b": \n\n")?;
                alive = Instant::now();
            }
            // Not the whole time at once: the command ends when it is told to.
            let until = Instant::now() + LOOK_EVERY;
            while Instant::now() < until && !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(())
    }
}

fn parse<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, Refusal> {
    let wrong = Refusal::new(400, "what was posted is not understood");
    serde_json::from_slice(body).map_err(|_| wrong)
}

/// What a thread that has panicked leaves is as good as before: everything is set anew for each text.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
