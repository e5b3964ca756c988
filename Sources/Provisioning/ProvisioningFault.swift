package import Settings

/// Why a configuration cannot be used although each of its values is valid: a file that it names cannot be read, or does not fit.
package struct ProvisioningFault: Error, Equatable, CustomStringConvertible {
    /// The setting, such as `credentials[2].password`.
    package let key: String
    package let message: String
    /// What to do about it. Nil if the message is sufficient.
    package let hint: String?

    package init(_ key: String, _ message: String, hint: String? = nil) {
        self.key = key
        self.message = message
        self.hint = hint
    }

    package var description: String { "\(key): \(message)" + (hint.map { "; \($0)" } ?? "") }
}

extension ConfigurationReading {
    /// The fault with its file and line.
    package func problem(_ fault: ProvisioningFault) -> ConfigurationError {
        problem(fault.key, fault.message, hint: fault.hint)
    }
}
