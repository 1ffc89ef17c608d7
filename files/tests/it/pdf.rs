//! PDF files: their text, and those that are damaged or made to do harm.

use std::fmt::Write as _;

use proptest::prelude::*;
use throughline_core::files::SkipReason;

use crate::support::Disk;

/// A PDF of these objects, the first of which is the catalogue.
fn pdf(objects: &[String]) -> Vec<u8> {
    let mut file = "%PDF-1.4\n".to_owned();
    let mut offsets = Vec::new();
    for (nth, object) in objects.iter().enumerate() {
        offsets.push(file.len());
        write!(file, "{} 0 obj\n{object}\nendobj\n", nth + 1).unwrap();
    }
    let start = file.len();
    write!(file, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).unwrap();
    offsets.iter().for_each(|offset| writeln!(file, "{offset:010} 00000 n ").unwrap());
    let size = objects.len() + 1;
    write!(file, "trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").unwrap();
    file.into_bytes()
}

/// A PDF of one page with this content.
fn page(content: &str) -> Vec<u8> {
    pdf(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 5 0 R \
         /Resources << /Font << /F1 4 0 R >> >> >>"
            .to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
    ])
}

const HARBOUR: &str =
    "BT /F1 12 Tf 20 100 Td (The ferry leaves) Tj 0 -20 Td (the harbour at nine.) Tj ET";

async fn read(bytes: &[u8]) -> Result<String, SkipReason> {
    let disk = Disk::new();
    disk.write("a.pdf", bytes);
    disk.read("a.pdf").await.map(|file| file.text)
}

#[tokio::test]
async fn text_of_pages_is_read() {
    let bytes = page(HARBOUR);
    let text = read(&bytes).await.unwrap();
    assert!(text.contains("The ferry leaves") && text.contains("the harbour at nine."), "{text:?}");
    let disk = Disk::new();
    disk.write("paper", &bytes);
    let file = disk.read("paper").await.unwrap();
    assert_eq!((file.text, file.stat.size), (text, bytes.len() as u64), "also under another name");
}

#[tokio::test]
async fn page_without_text_is_named() {
    assert_eq!(read(&page("0 0 100 100 re f")).await, Err(SkipReason::NoPdfText));
}

#[tokio::test]
async fn what_is_no_pdf_is_broken() {
    for bytes in [&b"not a pdf"[..], b"%PDF-1.7", b"%PDF-1.7\n%%EOF", b"\0\0\0\0"] {
        assert_eq!(read(bytes).await, Err(SkipReason::BrokenPdf), "{bytes:?}");
    }
}

#[tokio::test]
async fn password_is_named() {
    let encrypted = pdf(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [] /Count 0 >>".to_owned(),
        format!("<< /Filter /Standard /V 1 /R 2 /P -4 /O <{0}> /U <{0}> >>", "5a".repeat(32)),
    ]);
    let trailer = "/Root 1 0 R /Encrypt 3 0 R /ID [<00> <00>]";
    let encrypted = String::from_utf8(encrypted).unwrap().replace("/Root 1 0 R", trailer);
    assert_eq!(read(encrypted.as_bytes()).await, Err(SkipReason::LockedPdf));
}

#[tokio::test]
async fn nested_objects_do_not_exhaust_the_stack() {
    let deep = 2_000_000;
    let nested = format!("{}{}", "[".repeat(deep), "]".repeat(deep));
    let dictionaries = format!("{}{}", "<</A".repeat(deep), ">>".repeat(deep));
    for object in [nested, dictionaries, "(".repeat(deep)] {
        let in_object = pdf(&[format!("<< /Type /Catalog /Pages 2 0 R /A {object} >>")]);
        assert_eq!(read(&in_object).await, Err(SkipReason::BrokenPdf));
        let in_content = read(&page(&format!("BT /F1 12 Tf {object} TJ ET"))).await;
        assert!(in_content.is_err(), "{in_content:?}");
    }
}

#[tokio::test]
async fn pages_that_go_round_end() {
    let round = pdf(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [2 0 R 3 0 R 3 0 R] /Count 3 /Parent 2 0 R >>".to_owned(),
        "<< /Type /Page /Parent 3 0 R /Contents 3 0 R /Resources 3 0 R >>".to_owned(),
    ]);
    assert!(read(&round).await.is_err());
}

#[tokio::test]
async fn text_is_bounded() {
    let disk = Disk::with(|options| options.max_pdf_bytes = 2_000);
    // One page, named again and again.
    let pages = pdf(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count 60 >>", "3 0 R ".repeat(60)),
        "<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources << /Font << /F1 4 0 R >> >> >>"
            .to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{HARBOUR}\nendstream", HARBOUR.len()),
    ]);
    assert!(pages.len() < 2_000, "{}", pages.len());
    disk.write("a.pdf", &pages);
    let read = disk.read("a.pdf").await;
    assert!(read.is_err() || read.unwrap().text.len() <= 2_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is damaged, a file is read or skipped.
    #[test]
    fn damaged_files_end_nothing(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let mut bytes = page(HARBOUR);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _ = runtime.block_on(read(&bytes));
    }
}
