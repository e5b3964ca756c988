extension SettingKind where Value == RedisURL {
    static var redisURL: SettingKind {
        .scalar(
            "rediss://user@host:6379/0 or redis://host, with user, port and number of the database if they are others",
            parse: { RedisURL($0) }, render: { "\"\($0)\"" },
            hint: { text in
                if text.hasPrefix("unix:") || text.hasPrefix("/") {
                    return "sockets of this machine are not supported: name a loopback address"
                }
                guard let at = text.lastIndex(of: "@"), text[..<at].dropFirst(9).contains(":") else { return nil }
                return "the password belongs in fleet.redis.password_file"
            })
    }
}

extension SettingKind where Value == String {
    static var nodeName: SettingKind {
        .scalar(
            "a name of 1 to 64 letters, digits, \"-\", \".\" and \"_\"",
            parse: { text in
                (1...64).contains(text.utf8.count)
                    && text.utf8.allSatisfy { byte in
                        switch byte {
                        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
                        default: false
                        }
                    } ? text : nil
            }, render: { $0 })
    }
}
