"""What the API and the dashboard share: request, authentication, problems, limits, documents."""
