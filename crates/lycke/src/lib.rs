//! Cloudlycke, the local cloud. No code yet.
