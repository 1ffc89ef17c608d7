//! Files of a session over several turns: walked, read, planned, rendered, and kept.

use std::collections::BTreeMap;

use throughline_core::Result;
use throughline_core::files::{
    Budget, CountedFile, INTRODUCTION, InlineList, Mode, Outcome, PlanRequest, Planned, Readings,
    files_to_read, plan, render,
};
use throughline_core::ports::{FileRead, FileSource as _};
use throughline_testkit::WordTokenizer;
use throughline_testkit::conformance::DirectedFiles as _;
use throughline_testkit::memory::MemoryFiles;

/// What a caller keeps of a session.
#[derive(Default)]
struct Session {
    files: MemoryFiles,
    list: Vec<u8>,
}

impl Session {
    /// One call: the plan, and what is sent. The list is kept only where the call succeeds.
    async fn call(&mut self, paths: &[&str], budget: Budget) -> Result<(Planned, String)> {
        let list = match self.list.as_slice() {
            [] => InlineList::default(),
            bytes => InlineList::decode(bytes)?,
        };
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let walk = self.files.walk(&paths).await?;
        let mut request = PlanRequest::new(Mode::On, budget);
        (request.given, request.context, request.skipped) = (walk.given, walk.files, walk.skipped);
        let (mut readings, mut texts) = (Readings::new(), BTreeMap::new());
        for file in files_to_read(&list, &request) {
            let reading = match self.files.read(&file.path).await? {
                FileRead::Text(text) => {
                    let counted = CountedFile::of(&text, &WordTokenizer::exact());
                    texts.insert(file.path.clone(), text.text);
                    Ok(counted)
                }
                FileRead::Skipped(reason) => Err(reason),
            };
            readings.insert(file.path.clone(), reading);
        }
        let planned = plan(&list, &request, &readings)?;
        let prompt = render(&planned.plan, |path| texts.get(path).map(String::as_str))?;
        self.list = planned.next.encode();
        Ok((planned, prompt))
    }
}

fn outcomes(planned: &Planned) -> Vec<(&str, &str)> {
    let files = planned.plan.files.iter();
    files.map(|file| (file.path.as_str(), file.outcome.as_str())).collect()
}

#[tokio::test]
async fn only_what_changed_is_read_and_sent() {
    let mut session = Session::default();
    let budget = Budget::of(500);
    session.files.write("src/a.rs", b"fn a() {}\n");
    session.files.write("src/b.rs", b"fn b() { a(); a(); }\n");
    session.files.write("src/large.rs", "fn large() {}\n".repeat(500).as_bytes());
    session.files.write("logo.png", b"\x89PNG\0");

    let (first, prompt) = session.call(&["."], budget).await.unwrap();
    let expected = [
        ("src/a.rs", "inline"),
        ("src/b.rs", "inline"),
        ("logo.png", "skipped"),
        ("src/large.rs", "overflow"),
    ];
    assert_eq!(outcomes(&first), expected);
    assert!(
        prompt.starts_with(INTRODUCTION) && prompt.contains("fn b() { a(); a(); }"),
        "{prompt}"
    );
    let read = session.files.reads().len();

    let (second, prompt) = session.call(&["."], budget).await.unwrap();
    assert_eq!((session.files.reads().len(), prompt.as_str()), (read, ""));
    assert_eq!(second.plan.tokens.saved, first.plan.tokens.sent);

    session.files.write("src/b.rs", b"fn b() {}\n");
    session.files.set_modified("src/a.rs", 1);
    let (third, prompt) = session.call(&["."], budget).await.unwrap();
    assert_eq!(outcomes(&third)[..2], [("src/a.rs", "unchanged"), ("src/b.rs", "changed")]);
    assert_eq!(session.files.reads()[read..], ["src/a.rs", "src/b.rs"]);
    assert!(
        prompt.contains("\"src/b.rs\" changed=\"true\">\nfn b() {}\n</context_file>"),
        "{prompt}"
    );
    assert!(!prompt.contains("src/a.rs"), "{prompt}");

    session.files.remove("src/a.rs");
    let (_, prompt) = session.call(&["."], budget).await.unwrap();
    let gone = "<context_file path=\"src/a.rs\" removed=\"true\" />\n";
    assert_eq!(prompt, format!("{INTRODUCTION}\n{gone}"));
}

#[tokio::test]
async fn call_that_fails_leaves_list_as_it_was() {
    let mut session = Session::default();
    session.files.write("src/a.rs", b"fn a() {}\n");
    session.call(&["src"], Budget::of(500)).await.unwrap();
    let before = session.list.clone();
    session.files.write("src/a.rs", b"fn a() { changed(); }\n");
    session.call(&["src"], Budget { session: 500, call: 3 }).await.unwrap_err();
    assert_eq!(session.list, before);
    let (planned, _) = session.call(&["src"], Budget::of(500)).await.unwrap();
    assert_eq!(planned.plan.files[0].outcome, Outcome::Changed, "still to be sent");
}
