use hookgate::verify::Signature;

fn show(signature: &Signature) {
    println!("{signature}");
}

fn main() {}
