/// One word for a POSIX shell, quoted if it has to be (XCU §2.2.2). A NUL, which no word has, is left out.
package func shellWord(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
            UInt8(ascii: "_"):
            true
        default: false
        }
    }
    guard !isPlain || text.isEmpty else { return text }
    // By scalar: a character may be a quote and marks behind it.
    return text.unicodeScalars.reduce(into: "'") { word, scalar in
        switch scalar {
        case "\0": break
        case "'": word += "'\\''"
        default: word.unicodeScalars.append(scalar)
        }
    } + "'"
}
