//! x
use throughline_core::fact::Forms;
use throughline_core::ports::FactExtractor;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&args[1]).unwrap();
    let start = std::time::Instant::now();
    let mut n = 0;
    let mut out = String::new();
    for line in text.lines() {
        let v: serde_json::Value = serde_json::from_str(line).unwrap();
        let m = v["text"].as_str().unwrap();
        n += 1;
        let f = Forms.extract(m);
        let js: Vec<serde_json::Value> = f.iter().map(|f| serde_json::json!({"kind": f.kind.as_str(), "attribute": f.attribute, "value": f.value, "text": f.text, "refers": format!("{:?}", f.refers)})).collect();
        out.push_str(&serde_json::json!({"found": js}).to_string());
        out.push('\n');
    }
    eprintln!("{n} messages, {:?} each", start.elapsed() / n);
    print!("{out}");
}
