"""The reviewer's pages: pure view models, and the templates that show them.

A view model is built from a ``Review`` (a run that was read) by one function per page, and shown
by one template of the same name. Nothing here reads a file but the templates.
"""
