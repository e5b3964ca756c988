import Tokens

extension SettingKind where Value == KeySetSource {
    static var keySetSource: SettingKind {
        .scalar(
            "the path or the https URL of a JWK Set", parse: { KeySetSource($0) }, render: { "\($0)" },
            hint: { text in
                text.hasPrefix("http://") && KeySetSource(text) == nil
                    ? "whoever is on the way could send keys of their own: use https" : nil
            })
    }
}
