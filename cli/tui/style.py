"""Layout and style of the application in Textual's CSS; only the terminal's own colours."""

CSS = """
Screen, Static, Listing, Picture, Bar, FilterLine { background: ansi_default; color: ansi_default; }
#body { height: 1fr; }
#table { width: 1fr; height: 1fr; }
#panes { width: 1fr; height: 1fr; }
Picture, SmallTables { height: 1fr; }
Bar, #keys, #pane { height: 1; }
#status { height: auto; max-height: 8; }
#waiting { display: none; height: auto; max-height: 3; }
ContentSwitcher { height: 1fr; }
FilterLine { display: none; height: auto; max-height: 8; }
FilterLine Input { border: none; height: 1; padding: 0; background: ansi_default; color: ansi_default; }
FilterLine Input:focus, ModalScreen Input:focus { border: none; }
Input > .input--placeholder, Input > .input--suggestion { color: ansi_default; text-style: dim; }
Input > .input--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
Input > .input--selection { background: ansi_default; text-style: reverse; }
.dialog { width: auto; max-width: 100%; height: auto; max-height: 100%; border: ascii ansi_default;
          padding: 0 1; background: ansi_default; scrollbar-size: 0 0; }
ModalScreen { align: center middle; background: ansi_default; }
ModalScreen OptionList { width: auto; min-width: 30; max-height: 100%; border: none; padding: 0;
                         background: ansi_default; color: ansi_default; scrollbar-size: 0 0; }
OptionList > .option-list--option, OptionList > .option-list--option-hover {
    background: ansi_default; color: ansi_default; }
OptionList > .option-list--option-highlighted, OptionList:focus > .option-list--option-highlighted {
    background: ansi_default; color: ansi_default; text-style: reverse; }
ModalScreen Static { width: auto; max-width: 100%; }
ModalScreen Input { border: none; height: 1; width: 60; max-width: 100%; padding: 0; background: ansi_default;
                    color: ansi_default; text-style: underline; }
ModalScreen .label { margin: 1 0 0 0; text-style: bold; }
ModalScreen .slip { max-width: 76; }
"""
