/// Text between tags of HTML or in a quoted attribute (HTML §13.1.4).
package func htmlText(_ text: String) -> String {
    // By scalar: a character may be a bracket and marks around it.
    text.unicodeScalars.reduce(into: "") { result, scalar in
        switch scalar {
        case "&": result += "&amp;"
        case "<": result += "&lt;"
        case ">": result += "&gt;"
        case "\"": result += "&quot;"
        case "'": result += "&#39;"
        default: result.unicodeScalars.append(scalar)
        }
    }
}
