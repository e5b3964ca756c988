import Texts

/// Appends a string of JSON (RFC 8259 §7), in its quotes.
///
/// It can stand in a script of an HTML page, and acts on no terminal: `<`, control characters and those that nobody sees (`isShown`) are `\u` escapes.
package func appendJSONString(_ text: String, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    // By scalar: a character may be a quote and marks behind it.
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"": bytes.append(contentsOf: "\\\"".utf8)
        case "\\": bytes.append(contentsOf: "\\\\".utf8)
        case "\n": bytes.append(contentsOf: "\\n".utf8)
        case "\r": bytes.append(contentsOf: "\\r".utf8)
        case "\t": bytes.append(contentsOf: "\\t".utf8)
        case "<": bytes.append(contentsOf: unicodeEscape(scalar).utf8)
        case _ where isShown(scalar): bytes.append(contentsOf: String(scalar).utf8)
        default: bytes.append(contentsOf: unicodeEscape(scalar).utf8)
        }
    }
    bytes.append(UInt8(ascii: "\""))
}

/// A string of JSON, as `appendJSONString` writes it.
package func jsonString(_ text: String) -> String {
    var bytes: [UInt8] = []
    appendJSONString(text, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
}
