import Rules

extension AccessSettings {
    /// What holds for a job that learns with `--allow`, where these settings deny: all but what a rule with conditions denies.
    ///
    /// A deny rule for everything ends the rules like a default, and what the default denies is allowed. Destinations that are not public stay
    /// closed unless a rule names their addresses, and so do ports that are closed to tunnels.
    package var lenient: AccessSettings {
        var settings = self
        settings.rules = Array(
            rules.prefix {
                $0.isAllow || $0.isReport || $0.effect == .authenticate || !$0.conditions.isEverything
            })
        settings.writtenDefault = .allow
        settings.privateDestinations = .deny
        return settings
    }
}
