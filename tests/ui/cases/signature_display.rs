use hookgate::Signature;

fn show(signature: &Signature) {
    println!("{signature}");
}

fn main() {}
