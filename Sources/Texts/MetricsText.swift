/// The value of a label in the Prometheus text format 0.0.4, in its quotes.
package func metricsLabel(_ text: String) -> String { "\"\(metricsText(text, isQuoted: true))\"" }

/// The text of a HELP line in the Prometheus text format 0.0.4.
package func metricsHelp(_ text: String) -> String { metricsText(text, isQuoted: false) }

/// Backslash and line feed are escaped everywhere, the quote in quotes.
private func metricsText(_ text: String, isQuoted: Bool) -> String {
    // By scalar: a character may be a quote and marks behind it, or CR and LF.
    text.unicodeScalars.reduce(into: "") { result, scalar in
        switch scalar {
        case "\\": result += "\\\\"
        case "\n": result += "\\n"
        case "\"" where isQuoted: result += "\\\""
        default: result.unicodeScalars.append(scalar)
        }
    }
}
