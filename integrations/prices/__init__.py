"""Live price sources."""
