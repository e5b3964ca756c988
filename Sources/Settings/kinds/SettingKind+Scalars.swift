import Message

extension SettingKind where Value == UInt64 {
    /// - Parameter bounds: in bytes.
    static func size(_ bounds: ClosedRange<UInt64>) -> SettingKind {
        .scalar(
            "a size from \(renderSize(bounds.lowerBound)) to \(renderSize(bounds.upperBound))",
            parse: { text in parseSize(text).flatMap { bounds.contains($0) ? $0 : nil } }, render: renderSize)
    }
}

extension SettingKind where Value == UInt64 {
    /// The size of a disk tier in bytes. Zero turns it off.
    static var diskSize: SettingKind {
        let bounds = diskSizeMin...1 << 50
        return .scalar(
            "0, or a size from \(renderSize(bounds.lowerBound)) to \(renderSize(bounds.upperBound))",
            parse: { text in parseSize(text).flatMap { $0 == 0 || bounds.contains($0) ? $0 : nil } }, render: renderSize
        )
    }
}

extension SettingKind where Value == Duration {
    static func duration(_ bounds: ClosedRange<Duration>) -> SettingKind {
        .scalar(
            "a duration from \(renderDuration(bounds.lowerBound)) to \(renderDuration(bounds.upperBound))",
            parse: { text in parseDuration(text).flatMap { bounds.contains($0) ? $0 : nil } }, render: renderDuration,
            hint: { Int($0) == nil ? nil : "a duration needs a unit: \($0)s, \($0)m, \($0)h" })
    }
}

extension SettingKind where Value == Int {
    static func count(_ bounds: ClosedRange<Int>) -> SettingKind {
        .scalar(
            "a number from \(bounds.lowerBound) to \(bounds.upperBound)", parse: { parseCount($0, in: bounds) },
            render: { "\($0)" })
    }

    /// A share of a hundred.
    static var percent: SettingKind {
        .scalar(
            "a percentage from 0% to 100%",
            parse: { text in text.hasSuffix("%") ? parseCount(String(text.dropLast()), in: 0...100) : nil },
            render: { "\($0)%" }, hint: { parseCount($0, in: 0...100) == nil ? nil : "did you mean \($0)%?" })
    }

    /// Bytes that fit into an `Int`.
    static func bytes(_ bounds: ClosedRange<Int>) -> SettingKind {
        .scalar(
            "a size from \(renderSize(UInt64(bounds.lowerBound))) to \(renderSize(UInt64(bounds.upperBound)))",
            parse: { text in parseSize(text).flatMap { Int(exactly: $0) }.flatMap { bounds.contains($0) ? $0 : nil } },
            render: { renderSize(UInt64($0)) })
    }
}

extension SettingKind where Value == Bool {
    static var flag: SettingKind {
        .scalar(
            "yes or no",
            parse: { text in
                switch text.lowercased() {
                case "yes", "true", "on": true
                case "no", "false", "off": false
                default: nil
                }
            }, render: { $0 ? "yes" : "no" })
    }
}

extension SettingKind where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    /// One of the cases by its raw value.
    static var choice: SettingKind {
        let names = Value.allCases.map(\.rawValue)
        return .scalar(
            names.count == 2 ? "\(names[0]) or \(names[1])" : "one of \(names.joined(separator: ", "))",
            parse: { Value(rawValue: $0) }, render: { $0.rawValue },
            hint: { text in nearestName(to: text, among: names).map { "did you mean \($0)?" } })
    }
}

extension SettingKind where Value == String {
    /// - Parameter what: `a file`, `a directory`.
    static func path(_ what: String) -> SettingKind {
        .scalar(
            "the path of \(what)", parse: { $0.isEmpty || $0.utf8.contains(0) ? nil : $0 }, render: { $0 })
    }

    /// The path of a socket: absolute, at most 107 bytes (`sun_path`).
    static var socketPath: SettingKind {
        .scalar(
            "an absolute path of at most 107 bytes",
            parse: { $0.hasPrefix("/") && $0.utf8.count <= 107 && !$0.utf8.contains(0) ? $0 : nil }, render: { $0 })
    }

    /// Text on one line that is shown to people.
    static func text(_ lengthMax: Int) -> SettingKind {
        .scalar(
            "text of 1 to \(lengthMax) bytes without control characters",
            parse: { text in
                (1...lengthMax).contains(text.utf8.count) && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
                    ? text : nil
            }, render: { $0 })
    }
}

extension SettingKind where Value == Workers {
    static func workers(_ bounds: ClosedRange<Int>) -> SettingKind {
        .scalar(
            "auto, or a number from \(bounds.lowerBound) to \(bounds.upperBound)",
            parse: { $0 == "auto" ? .auto : parseCount($0, in: bounds).map(Workers.count) },
            render: { workers in
                switch workers {
                case .auto: "auto"
                case .count(let count): "\(count)"
                }
            })
    }
}

extension SettingKind where Value == AccessLogTarget {
    /// `stdout`, `off`, or a file. The slash tells a file from a misspelt word.
    static var logTarget: SettingKind {
        .scalar(
            "stdout, off, or a file with a / in its path",
            parse: { text in
                switch text {
                case "stdout": .stdout
                case "off": .off
                default: text.contains("/") && !text.utf8.contains(0) ? .file(text) : nil
                }
            },
            render: { target in
                switch target {
                case .stdout: "stdout"
                case .off: "off"
                case .file(let path): path
                }
            }, hint: { text in nearestName(to: text, among: ["stdout", "off"]).map { "did you mean \($0)?" } })
    }
}

extension SettingKind where Value == ListenAddress {
    static var listenAddress: SettingKind {
        .scalar(
            "host:port with an address as host, [v6]:port, unix:/path, systemd or systemd:NAME",
            parse: { ListenAddress($0) },
            render: { "\($0)" })
    }

    static var tcpAddress: SettingKind {
        .scalar(
            "host:port with an address as host, or [v6]:port",
            parse: { text in
                guard let address = ListenAddress(text), case .tcp = address else { return nil }
                return address
            }, render: { "\($0)" })
    }
}
